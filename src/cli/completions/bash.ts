// Completion for bash, from version 3.2 on, without the package bash-completion.

import type { DescribedCommand } from "../command/described.js";
import { callable, completedOf, singleQuoted, takesValue, writtenForms, type Completed } from "./flag-values.js";

/** A script that defines the completion of `streamdir`. */
export function bashCompletion(commands: readonly DescribedCommand[]): string {
  const tools = commands.filter(({ tasks }) => tasks.length > 0);
  const seconds = tools.map(({ name, tasks }) => {
    const offered = `streamdir_words ${singleQuoted(namesOf(tasks))}`;
    return `    ${name}) if ((COMP_CWORD == 2)); then ${offered}; return; fi ;;`;
  });
  const values = callable(commands).flatMap(({ called, flags }) =>
    flags.filter(takesValue).map((flag) => {
      const patterns = writtenForms(flag).map((form) => singleQuoted(`${called} ${form}`));
      return `    ${patterns.join("|")}) ${reply(completedOf(flag.placeholder))}; return ;;`;
    }),
  );
  const rest = callable(commands).map(({ called, flags, words = [] }) => {
    const forms = [...flags.flatMap(writtenForms), "--help"].join(" ");
    const place = completedOf(words[0]?.placeholder ?? "");
    const word = place.kind === "unknown" ? "" : `[[ $cur != -* ]] && ${reply(place)} || `;
    return `    ${singleQuoted(called)}) ${word}streamdir_words ${singleQuoted(forms)} ;;`;
  });
  return `# Completion of streamdir for bash.
streamdir_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
streamdir_paths() {
  local path quotes=""
  # Without compopt, in bash 3.2, a name goes on the line as it is: the shell would run what is in it.
  compopt -o filenames 2>/dev/null || quotes=1
  COMPREPLY=()
  while IFS= read -r path; do
    if [[ -n $quotes && $cur == "~"* ]]; then printf -v path '~%q' "\${path#?}"
    elif [[ -n $quotes ]]; then printf -v path %q "$path"; fi
    COMPREPLY+=("$path")
  done < <(compgen "$1" -- "$cur")
}
_streamdir() {
  local cur=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} called=\${COMP_WORDS[1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then streamdir_words ${singleQuoted(namesOf(commands))}; return; fi
  # In --flag=value the equals sign is a word of its own.
  if [[ $cur == = ]]; then cur=""; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $called in
${seconds.join("\n")}
  esac
  case $called in ${tools.map(({ name }) => name).join("|")}) called="$called \${COMP_WORDS[2]}" ;; esac
  case "$called $before" in
${values.join("\n")}
  esac
  case $called in
${rest.join("\n")}
  esac
}
complete -F _streamdir streamdir
`;
}

function namesOf(commands: readonly { readonly name: string }[]): string {
  return commands.map(({ name }) => name).join(" ");
}

function reply(completed: Completed): string {
  switch (completed.kind) {
    case "file":
      return "streamdir_paths -f";
    case "directory":
      return "streamdir_paths -d";
    case "words":
      return `streamdir_words ${singleQuoted(completed.words.join(" "))}`;
    case "unknown":
      return ":";
  }
}
