import { DirectConnection } from "../../src/http/node/direct-connection.js";

// As on a Node whose connections have no such names: every request goes Node's own way.
DirectConnection.open = () => null;
