//! Parses the text below a verb's options.

/// The text below the options in a verb's help, split into its parts.
#[derive(Default)]
pub struct Help {
    pub examples: Vec<String>,
    pub exit_codes: Option<String>,
    pub environment: Option<String>,
    /// A path, and its purpose.
    pub files: Option<String>,
    /// The remaining paragraphs.
    pub notes: Vec<String>,
}

impl Help {
    pub fn of(command: &clap::Command) -> Help {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut help = Help::default();
        let mut in_examples = false;
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            let examples = paragraph.strip_prefix("Examples:\n");
            // A list of examples continues as long as lines are indented.
            in_examples = examples.is_some() || in_examples && paragraph.starts_with("  ");
            let lines = || examples.unwrap_or(paragraph).lines().map(str::to_owned);
            if in_examples {
                help.examples.extend(lines());
            } else if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                help.exit_codes = Some(codes.split_whitespace().collect::<Vec<_>>().join(" "));
            } else if let Some(variables) = paragraph.strip_prefix("Environment: ") {
                help.environment = Some(variables.replace('\n', " "));
            } else if let Some(files) = paragraph.strip_prefix("Files: ") {
                help.files = Some(files.replace('\n', " "));
            } else {
                help.notes.push(paragraph.to_owned());
            }
        }
        help
    }
}
