import { Icon } from "../parts/icons";
import { heldToast, hush, toasts } from "../state";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div
          key={toast.id}
          class={`toast toast-${toast.tone}`}
          onMouseEnter={() => (heldToast.value = toast.id)}
          onMouseLeave={() => (heldToast.value = null)}
          onFocusIn={() => (heldToast.value = toast.id)}
          onFocusOut={() => (heldToast.value = null)}
        >
          {toast.tone === "problem" && <Icon name="warning" />}
          <span class="toast-text">{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              class="toast-action"
              onClick={() => {
                hush(toast.id);
                toast.action!.run();
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button type="button" class="bare" aria-label="Dismiss" onClick={() => hush(toast.id)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
