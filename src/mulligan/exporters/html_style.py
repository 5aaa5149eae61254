"""The style sheet of an exported page, for light and dark mode."""

from typing import Final

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d1f21; --soft: #6a6f76; --line: #e3e4e1; --box: #f4f4f1;
  --you: #eaf1fb; --good: #1a7f37; --bad: #c9302c; --new: #e6f6ea; --old: #fdebea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #17191b; --ink: #e2e4e6; --soft: #9097a0; --line: #2d3134; --box: #1f2225;
    --you: #1c2836; --good: #56c26f; --bad: #f0776f; --new: #17301f; --old: #3a1d1d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 6rem; max-width: 54rem;
  background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif;
}
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
header p { color: var(--soft); margin: .25rem 0 .75rem; font-size: .9rem; }
h2 { font-size: .8rem; margin: 0 0 .25rem; color: var(--soft); font-weight: 600; }
article { margin: 1.1rem 0; position: relative; }
article p { margin: .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
article.you { background: var(--you); border-radius: .6rem; padding: .8rem 1rem; margin-top: 2rem; }
article.quiet, article.note { color: var(--soft); font-size: .92rem; }
article.note { border-left: 3px solid var(--line); padding-left: .8rem; }
article.call, article.edit { margin: .3rem 0; font-size: .92rem; }
article.call .when, article.edit .when { opacity: 0; }
article:hover .when { opacity: 1; }
article.turn { border: 1px solid var(--line); border-radius: .6rem; padding: .7rem 1rem; }
article.turn details, article.turn .file { font-size: .92rem; }
article.compacted { opacity: .65; }
article:target { outline: 2px solid var(--soft); outline-offset: .3rem; border-radius: .3rem; }
.when { float: right; font-size: .72rem; margin: 0 0 0 1rem; }
.when a { color: var(--soft); text-decoration: none; }
.label {
  background: var(--box); border: 1px solid var(--line); border-radius: 1rem;
  padding: 0 .6em; margin-right: .6em;
}
code, pre { font: .86em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code { background: var(--box); padding: .1em .3em; border-radius: .25em; overflow-wrap: anywhere; }
pre {
  background: var(--box); border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0;
  padding: .6rem .8rem; overflow-x: auto; max-height: 40rem; unicode-bidi: plaintext;
}
pre.diff span { display: inline-block; min-width: 100%; }
.new { background: var(--new); }
.old { background: var(--old); }
.head, .took { color: var(--soft); }
.good { color: var(--good); }
.bad { color: var(--bad); }
summary { cursor: pointer; overflow-wrap: anywhere; }
details.branch { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1rem; }
@media print { pre { max-height: none; white-space: pre-wrap; } .when { display: none; } }
"""
