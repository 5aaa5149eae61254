import { Segments } from "../parts/small";
import { setTheme, theme, type Theme } from "../state";

export function ThemeChoice() {
  return (
    <Segments<Theme>
      label="Theme"
      value={theme.value}
      choose={setTheme}
      options={[
        { value: "light", label: "Light", icon: "sun" },
        { value: "system", label: "Follow the system", icon: "system" },
        { value: "dark", label: "Dark", icon: "moon" },
      ]}
    />
  );
}
