// Tells Mulligan what happens. Nothing in here may reach pi: whatever goes wrong is let go.
import { spawn } from "node:child_process";

const LONGEST = 60000;

// Calls `mulligan hook pi` with one happening, and gives its answer, or null if there is none.
function tell(happening) {
  return new Promise((resolve) => {
    try {
      const [program, ...words] = MULLIGAN;
      const child = spawn(program, [...words, "hook", "pi", ...(STRICT ? ["--strict"] : [])], {
        stdio: ["pipe", "pipe", "ignore"],
      });
      const clock = setTimeout(() => child.kill("SIGKILL"), LONGEST);
      let answer = "";
      const done = (value) => {
        clearTimeout(clock);
        resolve(value);
      };
      child.on("error", () => done(null));
      child.stdin.on("error", () => {});
      child.stdout.on("error", () => {});
      child.stdout.on("data", (piece) => (answer += piece));
      child.on("close", () => {
        try {
          done(JSON.parse(answer));
        } catch {
          done(null);
        }
      });
      child.stdin.end(JSON.stringify(happening));
    } catch {
      resolve(null);
    }
  });
}

function said(message) {
  const content = message?.content;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part?.type === "text" ? part.text : "")).join("");
}

export default function mulligan(pi) {
  const begun = new Map();
  let stopped = null; // why this prompt may not go on, where the user chose to be strict

  const about = (kind, ctx, more) => {
    const log = ctx.sessionManager.getSessionFile();
    return {
      kind,
      session: ctx.sessionManager.getSessionId(),
      directory: ctx.cwd,
      model: ctx.model?.id,
      log,
      ...more,
    };
  };

  const on = (event, handler) => {
    try {
      pi.on(event, async (told, ctx) => {
        try {
          return await handler(told, ctx);
        } catch {
          return undefined;
        }
      });
    } catch {
      // This version does not have the event.
    }
  };

  on("session_start", async (event, ctx) => {
    await tell(about("session_starts", ctx, { source: event.reason }));
  });

  // The log goes on elsewhere: what it says by now comes before the next prompt.
  on("session_compact", async (_event, ctx) => {
    await tell(about("session_starts", ctx, { source: "compact" }));
  });

  on("before_agent_start", async (event, ctx) => {
    const answer = await tell(about("prompt", ctx, { text: event.prompt ?? "" }));
    stopped = answer?.stop ?? (STRICT && !answer ? "Mulligan does not answer." : null);
    const message = stopped ?? answer?.to_user;
    if (message) {
      if (ctx.hasUI) ctx.ui.notify(message, stopped ? "error" : "warning");
      else console.error(message);
    }
    if (!answer?.to_agent) return undefined;
    return { message: { customType: "mulligan", content: answer.to_agent, display: true } };
  });

  // Earlier there is nothing yet that could be aborted.
  for (const event of ["agent_start", "turn_start", "context"]) {
    on(event, async (_event, ctx) => {
      if (stopped) ctx.abort();
    });
  }

  on("tool_call", async (event, ctx) => {
    if (stopped) return { block: true, reason: stopped };
    const { toolCallId: call, toolName: tool, input } = event;
    await tell(about("call_begins", ctx, { call, tool, input }));
    begun.set(call, Date.now());
    return undefined;
  });

  on("tool_result", async (event, ctx) => {
    const { toolCallId: call, toolName: tool, input } = event;
    const since = begun.get(call);
    begun.delete(call);
    const duration = since === undefined ? undefined : Date.now() - since;
    await tell(about("call_ends", ctx, { call, tool, input, ok: !event.isError, duration }));
  });

  on("agent_end", async (event, ctx) => {
    const last = (event.messages ?? []).filter((each) => each?.role === "assistant").at(-1);
    const answer = await tell(about("turn_ends", ctx, { text: said(last) || undefined }));
    if (answer?.to_user && ctx.hasUI) ctx.ui.notify(answer.to_user, "info");
  });

  on("session_shutdown", async (_event, ctx) => {
    await tell(about("session_ends", ctx, {}));
  });
}
