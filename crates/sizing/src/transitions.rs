//! Tables of a controller's states: the only source of its transitions and of their diagrams.

use crate::Reason;

/// Why one state follows another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Why {
    Reported(&'static [Reason]),
    /// A change of the way of holding, which no event reports.
    Within(
        #[cfg_attr(not(test), expect(dead_code, reason = "only the diagrams show it"))]
        &'static str,
    ),
}

/// The state before, the reason, and the state after.
pub(crate) type Transition<Name> = (Name, Why, Name);

/// Whether a table has a transition between these for a reason that `applies`.
pub(crate) fn has_transition<Name: Copy + Eq>(
    table: &[Transition<Name>],
    from: Name,
    to: Name,
    applies: impl Fn(Why) -> bool,
) -> bool {
    table.iter().any(|(start, why, end)| (*start, *end) == (from, to) && applies(*why))
}

/// Whether a table has a transition between these that is reported for `reason`.
pub(crate) fn is_reported<Name: Copy + Eq>(
    table: &[Transition<Name>],
    from: Name,
    to: Name,
    reason: Reason,
) -> bool {
    has_transition(
        table,
        from,
        to,
        |why| matches!(why, Why::Reported(reasons) if reasons.contains(&reason)),
    )
}

#[cfg(test)]
pub(crate) mod diagram {
    use std::fmt::Debug;

    use super::{Transition, Why};

    /// The table as the documents show it: one line per reason.
    pub(crate) fn diagram<Name: Copy + Debug>(table: &[Transition<Name>]) -> String {
        let mut text = String::new();
        for (from, why, to) in table {
            let lines = match why {
                Why::Reported(reasons) => reasons.iter().map(|reason| reason.to_string()).collect(),
                Why::Within(condition) => vec![(*condition).to_owned()],
            };
            let edge = format!("{:<10} -> {:<10}", format!("{from:?}"), format!("{to:?}"));
            for (place, why) in lines.into_iter().enumerate() {
                let edge = if place == 0 { edge.as_str() } else { "" };
                text += &format!("{edge:<24}  {why}\n");
            }
        }
        text
    }

    /// Fails unless the `text` of a file, in lines that begin with `mark`, shows the diagram of the table.
    pub(crate) fn assert_shown<Name: Copy + Debug>(
        table: &[Transition<Name>],
        file: &str,
        text: &str,
        mark: &str,
    ) {
        let expected = diagram(table);
        let lines = text.lines().map(|line| line.strip_prefix(mark).unwrap_or(line));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(text.contains(&expected), "{file} is to show:\n{expected}");
    }

    /// Fails unless each state of the table has a way in and a way out, except for the way into `first`.
    pub(crate) fn assert_connected<Name: Copy + Debug + Eq>(
        table: &[Transition<Name>],
        first: Name,
    ) {
        for name in table.iter().flat_map(|row| [row.0, row.2]) {
            assert!(table.iter().any(|row| row.0 == name && row.2 != name), "{name:?} is not left");
            let is_reached = table.iter().any(|row| row.2 == name && row.0 != name);
            assert!(is_reached || name == first, "{name:?} is not reached");
        }
    }
}
