//! The names of limits in tables, for the help of `top` and `diagnose`.

use sweetspot_diagnose::Class;

/// Each short name with the name in a diagnosis, one a line.
pub fn short_names() -> String {
    let names = Class::ALL.map(|class| (class.brief(), class));
    let shortened = names.iter().filter(|(short, class)| *short != class.words());
    let lines: Vec<String> =
        shortened.map(|(short, class)| format!("  {short:<15} {class}")).collect();
    lines.join("\n")
}
