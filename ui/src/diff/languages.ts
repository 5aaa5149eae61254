/** Languages for syntax highlighting: comments, strings, keywords. */

export interface Language {
  line?: string[];
  block?: [string, string][];
  /** Quotes of strings that end with their line. */
  strings?: string[];
  /** Start and end of strings that may span lines. */
  long?: [string, string][];
  words?: string;
  constants?: string;
  /** Special names, such as keys, tags and decorators. */
  names?: RegExp;
  kind?: "code" | "markup" | "prose";
}

const C_COMMENTS = { line: ["//"], block: [["/*", "*/"]] as [string, string][] };
const QUOTES = ['"', "'"];
export const CONSTANTS = "true false null undefined None True False nil NaN this self super";

const JAVASCRIPT: Language = {
  ...C_COMMENTS,
  strings: QUOTES,
  long: [["`", "`"]],
  words:
    "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in instanceof interface is keyof let namespace new of private protected public readonly return satisfies set static switch throw try type typeof var void while with yield",
  names: /@\w+/y,
};
const PYTHON: Language = {
  line: ["#"],
  strings: QUOTES,
  long: [
    ['"""', '"""'],
    ["'''", "'''"],
  ],
  words:
    "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try type while with yield",
  names: /@[\w.]+/y,
};
const C: Language = {
  ...C_COMMENTS,
  strings: QUOTES,
  words:
    "alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern float for friend goto if inline int long namespace new noexcept operator override private protected public register return short signed sizeof static struct switch template throw try typedef typename union unsigned using virtual void volatile while",
  names: /#\s*\w+/y,
};
const JAVA: Language = {
  ...C_COMMENTS,
  strings: QUOTES,
  long: [['"""', '"""']],
  words:
    "abstract as boolean break by case catch class companion const continue data def default do double else enum extends final finally float for fun if implements import in inner int interface internal is lateinit long match native new object open operator out override package private protected public record return sealed static struct super suspend switch synchronized throw throws trait try typealias val var virtual void volatile when where while with yield using namespace string var async await get set foreach",
  names: /@\w+/y,
};
const RUST: Language = {
  ...C_COMMENTS,
  strings: ['"'],
  words:
    "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct trait type unsafe use where while",
  names: /#!?\[[^\]]*\]|\w+!(?=[([{])|'\w+\b(?!')/y,
};
const GO: Language = {
  ...C_COMMENTS,
  strings: QUOTES,
  long: [["`", "`"]],
  words:
    "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
};
const RUBY: Language = {
  line: ["#"],
  strings: QUOTES,
  words:
    "alias and begin break case class def defined do else elsif end ensure for if in module next not or redo rescue retry return then undef unless until when while yield require attr_accessor attr_reader",
  names: /:\w+|@@?\w+/y,
};
const PHP: Language = { ...JAVA, line: ["//", "#"], names: /\$\w+/y };
const SHELL: Language = {
  line: ["#"],
  long: [
    ['"', '"'],
    ["'", "'"],
  ],
  words:
    "case do done elif else esac exit export fi for function if in local return select set shift source then trap unset until while",
  names: /\$\w+|\$\{[^}]*\}|(?<=\s)--?[\w-]+/y,
};
const SQL: Language = {
  line: ["--"],
  block: [["/*", "*/"]],
  strings: QUOTES,
  words:
    "add all alter and as asc begin between by case check column commit constraint create default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null on or order outer primary references rollback select set table then trigger union unique update using values view when where with " +
    "ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE CHECK COLUMN COMMIT CONSTRAINT CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM FULL GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER PRIMARY REFERENCES ROLLBACK SELECT SET TABLE THEN TRIGGER UNION UNIQUE UPDATE USING VALUES VIEW WHEN WHERE WITH",
};
const CSS: Language = {
  ...C_COMMENTS,
  strings: QUOTES,
  names: /@[\w-]+|--[\w-]+|[\w-]+(?=\s*:[^:])|#[\da-fA-F]{3,8}\b/y,
};
const HTML: Language = {
  block: [["<!--", "-->"]],
  strings: QUOTES,
  names: /<\/?[\w:-]+|\/?>|[\w:@.-]+(?==)/y,
  kind: "markup",
};
const JSON_: Language = { line: ["//"], strings: ['"'], names: /"(?:[^"\\]|\\.)*"(?=\s*:)/y };
const YAML: Language = {
  line: ["#"],
  strings: QUOTES,
  names: /[\w./-]+(?=\s*:(\s|$))|[&*!][\w-]+/y,
};
const TOML: Language = {
  line: ["#", ";"],
  strings: QUOTES,
  long: [['"""', '"""']],
  names: /^\s*\[[^\]]*\]|[\w.-]+(?=\s*=)/y,
};
const MARKDOWN: Language = {
  long: [["```", "```"]],
  names: /^#{1,6} .*|^\s*([-*+]|\d+\.)(?= )|`[^`]+`|\*\*[^*]+\*\*|\[[^\]]*\]\([^)]*\)/y,
  kind: "prose",
};
const LUA: Language = {
  line: ["--"],
  block: [["--[[", "]]"]],
  strings: QUOTES,
  words:
    "and break do else elseif end for function goto if in local not or repeat return then until while",
};
const HASKELL: Language = {
  line: ["--"],
  block: [["{-", "-}"]],
  strings: ['"'],
  words:
    "case class data deriving do else if import in infix instance let module newtype of then type where",
};
const ELIXIR: Language = { ...RUBY, long: [['"""', '"""']] };
const DOCKER: Language = {
  line: ["#"],
  strings: QUOTES,
  words:
    "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR AS",
};
const MAKE: Language = { line: ["#"], strings: QUOTES, names: /^[\w.%/-]+(?=\s*:)|\$[({]\w+[)}]/y };
const SWIFT: Language = {
  ...C_COMMENTS,
  strings: ['"'],
  long: [['"""', '"""']],
  words:
    "actor as async await break case catch class continue default defer deinit do else enum extension fallthrough final for func guard if import in init inout internal is lazy let mutating open operator override private protocol public repeat return static struct subscript switch throw throws try typealias var weak where while",
  names: /[@#]\w+/y,
};

const BY_ENDING: Record<string, Language> = {
  js: JAVASCRIPT,
  mjs: JAVASCRIPT,
  cjs: JAVASCRIPT,
  jsx: JAVASCRIPT,
  ts: JAVASCRIPT,
  tsx: JAVASCRIPT,
  mts: JAVASCRIPT,
  javascript: JAVASCRIPT,
  typescript: JAVASCRIPT,
  vue: HTML,
  svelte: HTML,
  py: PYTHON,
  pyi: PYTHON,
  python: PYTHON,
  c: C,
  h: C,
  cc: C,
  cpp: C,
  cxx: C,
  hpp: C,
  m: C,
  java: JAVA,
  kt: JAVA,
  kts: JAVA,
  kotlin: JAVA,
  scala: JAVA,
  cs: JAVA,
  csharp: JAVA,
  dart: JAVA,
  groovy: JAVA,
  gradle: JAVA,
  rs: RUST,
  rust: RUST,
  go: GO,
  rb: RUBY,
  ruby: RUBY,
  php: PHP,
  sh: SHELL,
  bash: SHELL,
  zsh: SHELL,
  fish: SHELL,
  shell: SHELL,
  console: SHELL,
  sql: SQL,
  css: CSS,
  scss: CSS,
  less: CSS,
  html: HTML,
  htm: HTML,
  xml: HTML,
  svg: HTML,
  json: JSON_,
  jsonc: JSON_,
  json5: JSON_,
  jsonl: JSON_,
  yaml: YAML,
  yml: YAML,
  toml: TOML,
  ini: TOML,
  cfg: TOML,
  conf: TOML,
  env: TOML,
  md: MARKDOWN,
  markdown: MARKDOWN,
  lua: LUA,
  hs: HASKELL,
  elm: HASKELL,
  ex: ELIXIR,
  exs: ELIXIR,
  dockerfile: DOCKER,
  makefile: MAKE,
  mk: MAKE,
  swift: SWIFT,
  proto: C,
  zig: RUST,
  nix: YAML,
};

/** Return the language of a file name or code fence; null if unknown. */
export function languageOf(name: string): Language | null {
  const last = name.slice(name.lastIndexOf("/") + 1).toLowerCase();
  return BY_ENDING[last.slice(last.lastIndexOf(".") + 1)] ?? null;
}
