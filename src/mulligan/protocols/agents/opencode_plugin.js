// Tells Mulligan what happens. Nothing in here may reach OpenCode: whatever goes wrong is let go.
import { spawn, spawnSync } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";

const LONGEST = 60000;

function commandLine() {
  const [program, ...words] = MULLIGAN;
  return [program, [...words, "hook", "opencode", ...(STRICT ? ["--strict"] : [])]];
}

function parsed(answer) {
  try {
    return JSON.parse(answer);
  } catch {
    return null;
  }
}

// Calls `mulligan hook opencode` with one happening, and gives its answer, or null.
function tell(happening) {
  return new Promise((resolve) => {
    try {
      const [program, words] = commandLine();
      const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"] });
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
      child.on("close", () => done(parsed(answer)));
      child.stdin.end(JSON.stringify(happening));
    } catch {
      resolve(null);
    }
  });
}

// The same at once: OpenCode does not wait for those who hear of an event, and may be gone.
function tellNow(happening) {
  try {
    const [program, words] = commandLine();
    const input = JSON.stringify(happening);
    const stdio = ["pipe", "pipe", "ignore"];
    const done = spawnSync(program, words, { input, timeout: LONGEST, stdio });
    return parsed(String(done.stdout ?? ""));
  } catch {
    return null;
  }
}

export const Mulligan = async ({ client, directory }) => {
  const data = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share");
  const log = join(data, "opencode", "opencode.db");
  const above = new Map(); // the session that a sub-agent's session works for
  const begun = new Map();
  const ended = new Set();

  const root = (id) => {
    let found = id;
    while (above.has(found)) found = above.get(found);
    return found;
  };

  const about = (kind, id, more) => {
    const session = root(id);
    return { kind, session, directory, log, part: session, off_path: session !== id, ...more };
  };

  const safely = (handler) => async (...given) => {
    try {
      return await handler(...given);
    } catch {
      return undefined;
    }
  };

  const prompt = safely(async (input, output) => {
    const id = input?.sessionID ?? output?.message?.sessionID;
    if (!id || above.has(id)) return null;
    const texts = (output?.parts ?? []).filter((part) => part?.type === "text" && !part.synthetic);
    const text = texts.map((part) => part.text).join("\n");
    const model = input?.model?.modelID ?? output?.message?.model?.modelID;
    ended.delete(id);
    const answer = await tell(about("prompt", id, { text, model }));
    if (answer?.to_user) say(answer.to_user, "warning");
    if (answer?.to_agent && texts.length) texts.at(-1).text += `\n\n${answer.to_agent}`;
    return answer?.stop ?? (STRICT && !answer ? "Mulligan does not answer." : null);
  });

  const say = (message, variant) => {
    const body = { message, variant, title: "Mulligan" };
    // Nobody waits for it, and without a screen there is nothing to show it on.
    Promise.resolve(client?.tui?.showToast?.({ body })).catch(() => {});
  };

  return {
    "chat.message": async (input, output) => {
      const stop = await prompt(input, output);
      // The one thing that may be thrown: the user chose that no prompt goes unprotected.
      if (stop) throw new Error(stop);
    },

    "tool.execute.before": safely(async (input, output) => {
      const { sessionID, callID: call, tool } = input;
      await tell(about("call_begins", sessionID, { call, tool, input: output?.args }));
      begun.set(call, Date.now());
    }),

    "tool.execute.after": safely(async (input, output) => {
      const { sessionID, callID: call, tool, args } = input;
      const since = begun.get(call);
      begun.delete(call);
      const duration = since === undefined ? undefined : Date.now() - since;
      const code = output?.metadata?.exit;
      const ok = code === undefined || code === null || code === 0;
      await tell(about("call_ends", sessionID, { call, tool, input: args, ok, duration }));
    }),

    event: safely(async ({ event }) => {
      const info = event?.properties?.info;
      if (event?.type === "session.created" && info?.parentID) above.set(info.id, info.parentID);
      else if (event?.type === "session.created" && info?.id) {
        await tell(about("session_starts", info.id, {}));
      } else if (event?.type === "session.compacted") {
        // What the log says by now comes before the next prompt.
        const id = event.properties?.sessionID;
        if (id) tellNow(about("session_starts", id, { source: "compact" }));
      } else if (event?.type === "session.idle") {
        const id = event.properties?.sessionID;
        if (!id || above.has(id) || ended.has(id)) return;
        ended.add(id);
        const answer = tellNow(about("turn_ends", id, {}));
        if (answer?.to_user) say(answer.to_user, "info");
      }
    }),
  };
};
