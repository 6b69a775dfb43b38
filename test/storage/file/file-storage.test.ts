import { storageContract } from "../../contract/storage.contract.js";
import { openEngine, reopen, type Engine } from "../../helpers/engine.js";

storageContract("FileStorage", async (t) => {
  let engine: Engine = await openEngine();
  t.after(() => engine.storage.close());
  return {
    storage: engine.storage,
    restart: async () => {
      engine = await reopen(engine);
      return engine.storage;
    },
  };
});
