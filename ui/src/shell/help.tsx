import { useRef } from "preact/hooks";
import { helpShown, layers } from "../keys";
import { Dialog } from "../parts/dialog";
import { narrow } from "../parts/narrow";
import { ThemeChoice } from "./theme";

/** The keyboard help: keys of the current view, then keys that work everywhere. */
export function Help() {
  // Taken once: the help dialog adds a layer of its own.
  const visible = useRef(layers.value.filter((layer) => !layer.modal)).current;
  return (
    <Dialog
      title="Keyboard"
      close={() => (helpShown.value = false)}
      wide
      actions={narrow.value ? <ThemeChoice /> : undefined}
    >
      <div class="help">
        {[...visible].reverse().map((layer) => (
          <section key={layer.title}>
            <h3>{layer.title}</h3>
            <dl>
              {layer.bindings().map(({ key, does }) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((each) => (
                      <kbd key={each}>{each}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
