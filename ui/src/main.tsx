import { render } from "preact";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/diff.css";
import "./style/views.css";
import * as keys from "./keys";
import * as live from "./live";
import * as router from "./router";
import { App } from "./shell/app";
import * as state from "./state";

router.start();
keys.start();
state.start();
live.start();
render(<App />, document.getElementById("page")!);
