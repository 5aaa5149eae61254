import { Icon } from "../parts/icons";
import { dismissToast, pinnedToast, toasts } from "../state";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div
          key={toast.id}
          class={`toast toast-${toast.tone}`}
          onMouseEnter={() => (pinnedToast.value = toast.id)}
          onMouseLeave={() => (pinnedToast.value = null)}
          onFocusIn={() => (pinnedToast.value = toast.id)}
          onFocusOut={() => (pinnedToast.value = null)}
        >
          {toast.tone === "problem" && <Icon name="warning" />}
          <span class="toast-text">{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              class="toast-action"
              onClick={() => {
                dismissToast(toast.id);
                toast.action!.run();
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button
            type="button"
            class="bare"
            aria-label="Dismiss"
            onClick={() => dismissToast(toast.id)}
          >
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
