import { Dialog } from "../parts/dialog";
import { narrow } from "../parts/narrow";
import { ThemeChoice } from "./theme";
import { helpShown, layers } from "../keys";
import { useRef } from "preact/hooks";

/** Which keys do what: of the view that is shown, and everywhere. */
export function Help() {
  const known = useRef(layers.value.filter((layer) => !layer.modal)).current;
  return (
    <Dialog
      title="Keyboard"
      close={() => (helpShown.value = false)}
      wide
      actions={narrow.value ? <ThemeChoice /> : undefined}
    >
      <div class="help">
        {[...known].reverse().map((layer) => (
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
