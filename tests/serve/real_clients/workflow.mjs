// The official TypeScript client (as most agents have it) takes softmax from a wrong version to a
// right one. No dependency of the project:
//     npm install --prefix DIR @modelcontextprotocol/sdk && cp tests/serve/real_clients/workflow.mjs DIR
//     node DIR/workflow.mjs stdio triton-magics WORKSPACE tests/faults/kernels/softmax_right.py
//     node DIR/workflow.mjs http http://127.0.0.1:8000/mcp TOKEN tests/faults/kernels/softmax_right.py
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import fs from "fs";
const [how, where, token, sourceFile] = process.argv.slice(2);
const source = fs.readFileSync(sourceFile, "utf8");
const transport = how === "stdio"
  ? new StdioClientTransport({ command: where, args: ["mcp", "--workspace", token], env: process.env })
  : new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
const t0 = Date.now();
const client = new Client({ name: "real-client", version: "1" });
await client.connect(transport);
console.log("connected", Date.now() - t0, client.getServerVersion(), transport.protocolVersion ?? "");
const { tools } = await client.listTools();
console.log("tools", tools.length, JSON.stringify(tools).length);
let progress = 0;
async function call(name, args) {
  const t = Date.now();
  let r = await client.callTool({ name, arguments: args }, undefined, { onprogress: () => progress++ });
  let v = r.structuredContent ?? JSON.parse(r.content[0].text);
  while (v.ok === null && v.job) { r = await client.callTool({ name: "get_job_status", arguments: { job_id: v.job } }, undefined, { onprogress: () => progress++ }); v = r.structuredContent; }
  console.log(name, r.isError ? "ERROR" : "", Date.now() - t, "ms", (v.headline ?? JSON.stringify(v)).slice(0, 150));
  return v;
}
await call("get_overview", {});
await call("get_torch_op_info", { op: "softmax" });
await call("write_kernel_code", { op: "softmax", source: source.replace("tl.sum(numerator, axis=0)", "1.0") });
await call("validate_correctness", { op: "softmax", plan: "quick" });
await call("write_kernel_code", { op: "softmax", source });
await call("validate_correctness", { op: "softmax", plan: "quick" });
await call("benchmark_kernel", { op: "softmax" });
await call("validate_correctnes", { op: "softmax" }).catch(e => console.log("unknown tool:", e.message.slice(0, 200)));
await call("validate_correctness", { op: "softmx", plan: "x", seed: "y" }).catch(e => console.log("bad:", e.message.slice(0, 300)));
console.log("progress notifications", progress);
const controller = new AbortController();
setTimeout(() => controller.abort(), 1500);
await client.callTool({ name: "validate_correctness", arguments: { op: "softmax", plan: "full", seed: 5 } }, undefined, { signal: controller.signal }).catch(e => console.log("aborted:", String(e).slice(0, 80)));
await call("get_current_status", { op: "softmax" });
const res = await client.listResources(); console.log("resources", res.resources.length);
const pr = await client.listPrompts(); console.log("prompts", pr.prompts.map(p => p.name).join());
await client.close();
console.log("closed", Date.now() - t0);
