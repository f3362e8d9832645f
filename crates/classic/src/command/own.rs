//! joust's own flags on a tool's command line, which the original does not have. Owns their syntax. Start reading at
//! [`Chosen::take`].

/// A flag that is removed from the arguments before the tool sees them.
#[derive(Debug, Clone, Copy)]
pub struct OwnFlag {
    /// With its dashes ("--version-style").
    pub name: &'static str,
    /// Its allowed values; the first is the default.
    pub values: &'static [&'static str],
    /// What it chooses, for a sentence that continues with its values.
    pub about: &'static str,
}

impl OwnFlag {
    /// Chooses the version of the tool whose layout a report has; the first is the default.
    pub const fn version_style(values: &'static [&'static str]) -> Self {
        let about = "print the report as that version of the tool does";
        Self { name: "--version-style", values, about }
    }

    /// A sentence for the help.
    pub fn help(&self) -> String {
        let Self { name, values, about } = self;
        format!("{name} ({about}: {}) is joust's own too.", values.join(" or "))
    }
}

/// The flags that were typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen(Vec<(&'static str, &'static str)>);

impl Chosen {
    /// Removes them from the arguments, at any position: `--flag value` and `--flag=value`. The last one counts.
    ///
    /// # Errors
    /// A value that the flag does not have.
    pub fn take(flags: &[OwnFlag], args: &mut Vec<String>) -> Result<Self, String> {
        let mut chosen = Vec::new();
        for flag in flags {
            while let Some(at) = args.iter().position(|arg| is(flag, arg)) {
                let word = args.remove(at);
                let typed = match word.split_once('=') {
                    Some((_, value)) => value.to_owned(),
                    None if at < args.len() => args.remove(at),
                    None => String::new(),
                };
                let Some(value) = flag.values.iter().find(|value| **value == typed) else {
                    let values = flag.values.join(" or ");
                    return Err(format!("{} is {values}, not `{typed}`", flag.name));
                };
                chosen.push((flag.name, *value));
            }
        }
        Ok(Self(chosen))
    }

    /// The value of a flag; `None` where it was not typed.
    pub fn value(&self, name: &str) -> Option<&'static str> {
        self.0.iter().rev().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }
}

fn is(flag: &OwnFlag, arg: &str) -> bool {
    arg.strip_prefix(flag.name).is_some_and(|behind| behind.is_empty() || behind.starts_with('='))
}

#[cfg(test)]
mod tests {
    use super::super::testing::args;
    use super::*;

    const STYLE: &[OwnFlag] = &[OwnFlag::version_style(&["4.0.7", "4.1.7"])];

    #[test]
    fn own_flags_are_taken_out_wherever_they_stand() {
        for line in ["-c 1 --version-style 4.1.7 url", "-c 1 url --version-style=4.1.7"] {
            let mut args = args(line);
            let chosen = Chosen::take(STYLE, &mut args).unwrap();
            assert_eq!(chosen.value("--version-style"), Some("4.1.7"));
            assert_eq!(args, ["-c", "1", "url"]);
        }
        let mut other = args("--version --version-styles");
        assert_eq!(Chosen::take(STYLE, &mut other).unwrap().value("--version-style"), None);
        assert_eq!(other.len(), 2, "{other:?}");
    }

    #[test]
    fn the_last_one_counts_and_other_values_are_refused() {
        let mut twice = args("--version-style 4.1.7 --version-style 4.0.7");
        let chosen = Chosen::take(STYLE, &mut twice).unwrap();
        assert_eq!(chosen.value("--version-style"), Some("4.0.7"));
        let refused = |line: &str| Chosen::take(STYLE, &mut args(line)).unwrap_err();
        assert_eq!(refused("--version-style 5"), "--version-style is 4.0.7 or 4.1.7, not `5`");
        assert_eq!(refused("--version-style"), "--version-style is 4.0.7 or 4.1.7, not ``");
    }
}
