//! A pattern as a nondeterministic automaton. It follows all alternatives at once, so its time is proportional to the
//! lengths of the pattern and the path.

/// The steps of a pattern. It matches if their end is reached.
#[derive(Debug, Default)]
pub(super) struct Program(Vec<Step>);

#[derive(Debug)]
enum Step {
    Byte(u8),
    /// `?`: a byte other than a slash.
    AnyByte,
    /// `[...]`: never a slash.
    Class {
        inverted: bool,
        members: Vec<Member>,
    },
    /// `*`: bytes other than slashes.
    Star,
    /// `**`: any bytes.
    Stars,
    /// `{`: one of several steps comes next.
    Fork(Vec<usize>),
    /// The end of an alternative.
    Jump(usize),
}

#[derive(Debug, Clone, Copy)]
enum Member {
    Range(u8, u8),
    Named(fn(&u8) -> bool),
}

/// An unclosed `{`: the index of its fork, and of the ends of its alternatives.
struct Open {
    fork: usize,
    begins: Vec<usize>,
    ends: Vec<usize>,
}

impl Program {
    /// Compiles a pattern, which may begin after any slash if `any_depth`. An error is the reason why the pattern is
    /// invalid.
    pub fn new(pattern: &str, any_depth: bool) -> Result<Program, &'static str> {
        let mut steps = if any_depth { vec![Step::Stars, Step::Byte(b'/')] } else { Vec::new() };
        let mut open: Vec<Open> = Vec::new();
        // Without wildcards a backslash is a literal character.
        let escapes = pattern.contains(['*', '?', '[', '{']);
        let mut rest = pattern.as_bytes();
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                b'\\' if escapes => {
                    let [escaped, after @ ..] = rest else {
                        return Err("nothing follows the last `\\`");
                    };
                    steps.push(Step::Byte(*escaped));
                    rest = after;
                }
                b'?' => steps.push(Step::AnyByte),
                b'*' => {
                    let more = rest.iter().take_while(|byte| **byte == b'*').count();
                    steps.push(if more > 0 { Step::Stars } else { Step::Star });
                    rest = &rest[more..];
                }
                b'[' => {
                    let (class, after) = class(rest)?;
                    steps.push(class);
                    rest = after;
                }
                b'{' => {
                    let fork = steps.len();
                    steps.push(Step::Fork(Vec::new()));
                    open.push(Open { fork, begins: vec![fork + 1], ends: Vec::new() });
                }
                b',' | b'}' if !open.is_empty() => {
                    let last = open.len() - 1;
                    open[last].ends.push(steps.len());
                    steps.push(Step::Jump(0));
                    if *first == b',' {
                        open[last].begins.push(steps.len());
                    } else if let Some(Open { fork, begins, ends }) = open.pop() {
                        steps[fork] = Step::Fork(begins);
                        let end = steps.len();
                        ends.into_iter().for_each(|at| steps[at] = Step::Jump(end));
                    }
                }
                byte => steps.push(Step::Byte(*byte)),
            }
        }
        match open.is_empty() {
            true => Ok(Program(steps)),
            false => Err("`{` has no `}`; for the character itself, write `\\{`"),
        }
    }

    /// Whether the pattern matches the concatenation of these two parts of a path.
    pub fn is_match(&self, parts: [&[u8]; 2]) -> bool {
        let mut places = Places::new(self);
        places.enter(0);
        for byte in parts.into_iter().flatten() {
            places.advance(*byte);
        }
        places.reached[self.0.len()]
    }
}

/// The set of steps that may come next.
struct Places<'a> {
    steps: &'a [Step],
    reached: Vec<bool>,
    list: Vec<usize>,
}

impl Places<'_> {
    fn new(program: &Program) -> Places<'_> {
        let steps = &program.0;
        Places { steps, reached: vec![false; steps.len() + 1], list: Vec::new() }
    }

    /// Adds a step, and all steps that can be reached from it without consuming a byte.
    fn enter(&mut self, place: usize) {
        let mut pending = vec![place];
        while let Some(place) = pending.pop() {
            if std::mem::replace(&mut self.reached[place], true) {
                continue;
            }
            self.list.push(place);
            match self.steps.get(place) {
                Some(Step::Star | Step::Stars) => pending.push(place + 1),
                Some(Step::Fork(begins)) => pending.extend(begins),
                Some(Step::Jump(end)) => pending.push(*end),
                _ => {}
            }
        }
    }

    /// Consumes one byte of the path.
    fn advance(&mut self, byte: u8) {
        let before = std::mem::take(&mut self.list);
        before.iter().for_each(|place| self.reached[*place] = false);
        let is_slash = byte == b'/';
        for place in before {
            match self.steps.get(place) {
                Some(Step::Byte(own)) if *own == byte => self.enter(place + 1),
                Some(Step::AnyByte) if !is_slash => self.enter(place + 1),
                Some(Step::Class { inverted, members })
                    if !is_slash
                        && members.iter().any(|member| member.holds(byte)) != *inverted =>
                {
                    self.enter(place + 1);
                }
                Some(Step::Star) if !is_slash => self.enter(place),
                Some(Step::Stars) => self.enter(place),
                _ => {}
            }
        }
    }
}

impl Member {
    fn holds(self, byte: u8) -> bool {
        match self {
            Member::Range(first, last) => (first..=last).contains(&byte),
            Member::Named(holds) => holds(&byte),
        }
    }
}

/// Parses the class after a `[`. Returns it and the rest of the pattern after its `]`.
fn class(mut rest: &[u8]) -> Result<(Step, &[u8]), &'static str> {
    const OPEN: &str = "`[` has no `]`; for the character itself, write `\\[`";
    let inverted = matches!(rest, [b'!' | b'^', ..]);
    rest = &rest[usize::from(inverted)..];
    let mut members = Vec::new();
    loop {
        match rest {
            [] => return Err(OPEN),
            // A `]` in the first position does not close the class.
            [b']', after @ ..] if !members.is_empty() => {
                return Ok((Step::Class { inverted, members }, after));
            }
            [b'[', b':', after @ ..] => {
                let end = after.windows(2).position(|two| two == b":]").ok_or(OPEN)?;
                members.push(Member::Named(named(&after[..end])?));
                rest = &after[end + 2..];
            }
            _ => {
                let (first, after) = one(rest).ok_or(OPEN)?;
                let last = match after {
                    [b'-', end, ..] if *end != b']' => one(&after[1..]),
                    _ => Some((first, after)),
                };
                let (last, after) = last.ok_or(OPEN)?;
                members.push(Member::Range(first, last));
                rest = after;
            }
        }
    }
}

/// Parses one character of a class, with or without a backslash. Returns it and the rest.
fn one(rest: &[u8]) -> Option<(u8, &[u8])> {
    match rest {
        [b'\\', escaped, after @ ..] => Some((*escaped, after)),
        [b'\\'] | [] => None,
        [byte, after @ ..] => Some((*byte, after)),
    }
}

/// The characters of a class such as `[:alpha:]`.
fn named(name: &[u8]) -> Result<fn(&u8) -> bool, &'static str> {
    Ok(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| byte.is_ascii_graphic() || *byte == b' ',
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| byte.is_ascii_whitespace() || *byte == 0x0b,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return Err("expected a class such as `[:alpha:]` or `[:digit:]` within the brackets"),
    })
}
