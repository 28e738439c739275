/// A number with commas between groups of three digits: 137,931 instead of 137931.
///
/// ```
/// assert_eq!(sweetspot_units::grouped(65_536), "65,536");
/// ```
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.extend(group.iter().map(|&b| char::from(b)));
    }
    text
}
