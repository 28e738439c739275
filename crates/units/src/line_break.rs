/// Whether a line that ends at the space at `gap` parts a number from its unit.
///
/// ```
/// use sweetspot_units::parts_unit;
///
/// assert!(parts_unit("at 2.5 Gbit/s", 6) && parts_unit("(100 % of", 4));
/// assert!(!parts_unit("at 2.5 Gbit/s", 2) && !parts_unit("is 2.5. Then", 7));
/// ```
pub fn parts_unit(text: &str, gap: usize) -> bool {
    let (before, after) = text.split_at_checked(gap).unwrap_or((text, ""));
    let number = before.rsplit(' ').next().unwrap_or_default().trim_start_matches('(');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
    is_number && after.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '%')
}
