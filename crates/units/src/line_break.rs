/// Whether a line break between `before` and `after` would separate a number from its unit.
///
/// ```
/// use sweetspot_units::parts_unit;
///
/// assert!(parts_unit("at 2.5", " Gbit/s") && parts_unit("(100", " % of"));
/// assert!(!parts_unit("at", " 2.5 Gbit/s") && !parts_unit("is 2.5.", " Then"));
/// ```
pub fn parts_unit(before: &str, after: &str) -> bool {
    let number = before.rsplit(' ').next().unwrap_or_default().trim_start_matches('(');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
    is_number && after.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '%')
}
