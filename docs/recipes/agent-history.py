"""An agent's history: several processes append messages to it, each message once, and anybody follows it.

    python3 agent-history.py append NAME STATE   # a message of JSON on each line of the input
    python3 agent-history.py follow NAME         # prints each message when it comes, until the history is closed
    python3 agent-history.py close NAME

STREAMS says where the streams are, STREAMDIR_TOKEN is the token for a server with --auth. Python 3.8 or newer, no packages.
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

STREAMS = os.environ.get("STREAMS", "http://127.0.0.1:4437/v1/stream/")
TOKEN = os.environ.get("STREAMDIR_TOKEN", "")
# Longer than the server is silent: --sse-heartbeat has it send a comment every 15 s.
SILENCE_S = 45


def open_stream(method, name, query="", headers=None, body=None):
    """Asks until there is an answer that counts; what is refused for good is raised as an HTTPError."""
    url = STREAMS + urllib.parse.quote(name) + query
    headers = {**(headers or {}), **({"Authorization": f"Bearer {TOKEN}"} if TOKEN else {})}
    while True:
        try:
            request = urllib.request.Request(url, data=body, headers=headers, method=method)
            return urllib.request.urlopen(request, timeout=SILENCE_S)
        except urllib.error.HTTPError as refused:
            if refused.code < 500 and refused.code not in (408, 429):
                raise
            pause = float(refused.headers.get("Retry-After") or 1)
            refused.close()
        except (OSError, http.client.HTTPException):
            pause = 1
        time.sleep(pause)


def create(name):
    """Makes the history, unless it is there."""
    open_stream("PUT", name, headers={"Content-Type": "application/json"}).close()


def close(name):
    """Ends the history for good, for writers and for readers."""
    open_stream("POST", name, headers={"Stream-Closed": "true"}).close()


class Writer:
    """Appends to a history. STATE is a file of this writer alone: with it, a writer that was killed goes on where it was."""

    def __init__(self, name, state):
        create(name)
        self.name = name
        self.state_path = state
        try:
            with open(state, encoding="utf-8") as file:
                self.state = json.load(file)
        except FileNotFoundError:
            self.state = {"producer": str(uuid.uuid4()), "seq": -1, "message": None}
        # It may not have been stored. If it was, the server knows it by its number.
        if self.state["seq"] >= 0:
            self._send()

    @property
    def last(self):
        """The last message that was appended; None before the first."""
        return self.state["message"]

    def append(self, message):
        """Returns when the message is stored, once, whatever happens on the way."""
        state = {**self.state, "seq": self.state["seq"] + 1, "message": message}
        # Before it is sent: whoever starts this writer again sends the same.
        with open(self.state_path + ".new", "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.state_path + ".new", self.state_path)
        self.state = state
        self._send()

    def _send(self):
        headers = {
            "Content-Type": "application/json",
            "Producer-Id": self.state["producer"],
            "Producer-Epoch": "0",
            "Producer-Seq": str(self.state["seq"]),
        }
        # In brackets: a message that is a list would count as several.
        body = json.dumps([self.state["message"]]).encode()
        open_stream("POST", self.name, headers=headers, body=body).close()


def follow(name, offset="-1"):
    """Yields each message and the offset behind it: first what there is, then what comes, until the history is closed."""
    while True:
        with open_stream("GET", name, f"?live=sse&offset={offset}") as answer:
            kind, data, messages = "", [], []
            try:
                for line in answer:
                    line = line.decode().rstrip("\n")
                    if line.startswith("event: "):
                        kind = line[len("event: ") :]
                    elif line.startswith("data:"):
                        data.append(line[len("data:") :])
                    elif line == "" and data:
                        event, data = json.loads("\n".join(data)), []
                        if kind == "data":
                            messages = event
                            continue
                        # What a data event brings counts once its control event is there.
                        offset = event["streamNextOffset"]
                        for message in messages:
                            yield message, offset
                        messages = []
                        if event.get("streamClosed"):
                            return
            except (OSError, http.client.HTTPException):
                pass  # cut off: it goes on from the last offset


def main(verb, name, state=None):
    if verb == "append":
        writer = Writer(name, state)
        for line in sys.stdin:
            writer.append(json.loads(line))
    elif verb == "follow":
        for message, _ in follow(name):
            print(json.dumps(message, ensure_ascii=False), flush=True)
    elif verb == "close":
        close(name)


if __name__ == "__main__":
    if sys.argv[1:2] not in (["append"], ["follow"], ["close"]) or len(sys.argv) != (4 if sys.argv[1] == "append" else 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
