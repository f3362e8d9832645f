//! Parses arguments like the original tools' getopt. Owns the three variants that they use: apr_getopt (ab), getopt(3)
//! (weighttp), getopt_long(3) (siege, wrk), with their error messages for unknown arguments. Start reading at
//! [`Getopt`].
//!
//! No existing library is suitable: lexopt and pico-args have no option strings and leave permutation, abbreviated
//! names and messages to the caller, which is all the work here; getopts has its own messages and no support for `:` at
//! the start of an option string.

use std::collections::VecDeque;

/// How options and operands may be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// apr_getopt: the first operand ends the options, and so does any word that begins with `--`, which is skipped.
    Apr,
    /// getopt(3) and getopt_long(3) of the GNU C library: options may follow operands.
    Permuted,
}

/// An iteration over arguments.
pub struct Getopt<'a> {
    /// As in C: letters, each followed by `:` if it takes a value, by `::` if the value is optional. A `:` at the start
    /// concerns the caller and is skipped.
    letters: &'a str,
    /// Names after `--`, and whether they take a value; only [`Order::Permuted`] supports them.
    names: &'a [(&'a str, Takes)],
    order: Order,
    args: VecDeque<String>,
    /// The rest of a word with several letters (`n100` of `-kn100`).
    cluster: String,
    operands: Vec<String>,
}

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No.
    Nothing,
    /// Yes: in the same word or the next.
    Value,
    /// Only in the same word.
    Perhaps,
}

/// The next argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An option by its letter.
    Letter(char, Option<String>),
    /// An option by its full name, however it was abbreviated.
    Name(String, Option<String>),
    /// A letter that is not an option.
    UnknownLetter(char),
    /// A name that is not an option, as typed.
    UnknownName(String),
    /// A prefix of several names: as typed, and those names.
    Ambiguous(String, Vec<String>),
    /// A letter without its value.
    NoValue(char),
    /// A name without its value.
    NoValueOf(String),
    /// A name that takes no value, with a value.
    SurplusValue(String),
}

impl<'a> Getopt<'a> {
    /// With letters only.
    pub fn new(letters: &'a str, order: Order, args: &[String]) -> Self {
        Self {
            letters,
            names: &[],
            order,
            args: args.iter().cloned().collect(),
            cluster: String::new(),
            operands: Vec::new(),
        }
    }

    /// With names, too.
    #[must_use]
    pub fn with_names(self, names: &'a [(&'a str, Takes)]) -> Self {
        Self { names, ..self }
    }

    /// The arguments that are not options, in order; complete only after the iteration.
    pub fn operands(self) -> Vec<String> {
        self.operands
    }

    /// Whether an option takes a value; `None`: there is no such option.
    fn takes(&self, letter: char) -> Option<Takes> {
        let letters = self.letters.trim_start_matches(':');
        if letter == ':' || letter == '-' {
            return None;
        }
        let at = letters.find(letter)?;
        Some(match &letters[at + letter.len_utf8()..] {
            rest if rest.starts_with("::") => Takes::Perhaps,
            rest if rest.starts_with(':') => Takes::Value,
            _ => Takes::Nothing,
        })
    }

    fn next_letter(&mut self) -> Item {
        let letter = self.cluster.remove(0);
        match self.takes(letter) {
            None => Item::UnknownLetter(letter),
            Some(Takes::Nothing) => Item::Letter(letter, None),
            Some(_) if !self.cluster.is_empty() => {
                Item::Letter(letter, Some(std::mem::take(&mut self.cluster)))
            }
            Some(Takes::Perhaps) => Item::Letter(letter, None),
            // Whatever it is: `-n -5` and `-n --` take the next word.
            Some(Takes::Value) => match self.args.pop_front() {
                Some(value) => Item::Letter(letter, Some(value)),
                None => Item::NoValue(letter),
            },
        }
    }

    fn named(&mut self, typed: &str) -> Item {
        let (name, value) = match typed.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (typed, None),
        };
        let exact = self.names.iter().find(|(other, _)| *other == name);
        let beginning = || self.names.iter().filter(|(other, _)| other.starts_with(name));
        let Some(&(name, takes)) = exact.or_else(|| beginning().next()) else {
            return Item::UnknownName(typed.to_owned());
        };
        if exact.is_none() && beginning().count() > 1 {
            let possible = beginning().map(|(other, _)| (*other).to_owned()).collect();
            return Item::Ambiguous(typed.to_owned(), possible);
        }
        match (takes, value) {
            (Takes::Nothing, Some(_)) => Item::SurplusValue(name.to_owned()),
            (Takes::Value, None) => match self.args.pop_front() {
                Some(value) => Item::Name(name.to_owned(), Some(value)),
                None => Item::NoValueOf(name.to_owned()),
            },
            (_, value) => Item::Name(name.to_owned(), value),
        }
    }
}

impl Iterator for Getopt<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if !self.cluster.is_empty() {
            return Some(self.next_letter());
        }
        while let Some(word) = self.args.pop_front() {
            let Some(behind) = word.strip_prefix('-').filter(|behind| !behind.is_empty()) else {
                self.operands.push(word);
                if self.order == Order::Apr {
                    break;
                }
                continue;
            };
            if behind == "-" || (self.order == Order::Apr && behind.starts_with('-')) {
                break;
            }
            return Some(match behind.strip_prefix('-') {
                Some(name) if !self.names.is_empty() => self.named(name),
                _ => {
                    behind.clone_into(&mut self.cluster);
                    self.next_letter()
                }
            });
        }
        self.operands.extend(self.args.drain(..));
        None
    }
}

impl Item {
    /// apr_getopt's error message; `None` if the item is valid.
    pub fn apr_complaint(&self, program: &str) -> Option<String> {
        match self {
            // A dash in the middle of a word ends the iteration without a message.
            Self::UnknownLetter('-') => None,
            Self::UnknownLetter(letter) => Some(format!("{program}: illegal option -- {letter}\n")),
            Self::NoValue(letter) => {
                Some(format!("{program}: option requires an argument -- {letter}\n"))
            }
            _ => None,
        }
    }

    /// The GNU C library's error message; `None` if the item is valid.
    pub fn gnu_complaint(&self, program: &str) -> Option<String> {
        Some(match self {
            Self::Letter(..) | Self::Name(..) => return None,
            Self::UnknownLetter(letter) => format!("{program}: invalid option -- '{letter}'\n"),
            Self::UnknownName(name) => format!("{program}: unrecognized option '--{name}'\n"),
            Self::Ambiguous(name, possible) => {
                let possible: String = possible.iter().map(|name| format!(" '--{name}'")).collect();
                format!("{program}: option '--{name}' is ambiguous; possibilities:{possible}\n")
            }
            Self::NoValue(letter) => {
                format!("{program}: option requires an argument -- '{letter}'\n")
            }
            Self::NoValueOf(name) => format!("{program}: option '--{name}' requires an argument\n"),
            Self::SurplusValue(name) => {
                format!("{program}: option '--{name}' doesn't allow an argument\n")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::args;
    use super::*;

    fn letter(letter: char, value: &str) -> Item {
        Item::Letter(letter, (!value.is_empty()).then(|| value.to_owned()))
    }

    fn walk(mut getopt: Getopt<'_>) -> (Vec<Item>, Vec<String>) {
        let items = getopt.by_ref().collect();
        (items, getopt.operands())
    }

    #[test]
    fn letters_cluster_and_values_stand_in_the_word_or_behind_it() {
        let words = args("-kn100 -c 5 -n -5 url");
        let (items, operands) = walk(Getopt::new("n:c:k", Order::Apr, &words));
        let expected = [letter('k', ""), letter('n', "100"), letter('c', "5"), letter('n', "-5")];
        assert_eq!(items, expected);
        assert_eq!(operands, ["url"]);
    }

    #[test]
    fn apr_stops_at_the_first_operand_and_the_c_library_does_not() {
        let words = args("-k url -c 5 - -- -k");
        let (items, operands) = walk(Getopt::new("c:k", Order::Apr, &words));
        assert_eq!(items, [letter('k', "")]);
        assert_eq!(operands, ["url", "-c", "5", "-", "--", "-k"]);
        let (items, operands) = walk(Getopt::new("c:k", Order::Permuted, &words));
        assert_eq!(items, [letter('k', ""), letter('c', "5")]);
        assert_eq!(operands, ["url", "-", "-k"]);
    }

    #[test]
    fn two_dashes_end_the_options() {
        let (items, operands) = walk(Getopt::new("k", Order::Apr, &args("-k -- -k url")));
        assert_eq!((items, operands), (vec![letter('k', "")], args("-k url")));
        // apr_getopt compares the first two characters only, even inside a word.
        let (items, operands) = walk(Getopt::new("k", Order::Apr, &args("-k --help -k url")));
        assert_eq!((items, operands), (vec![letter('k', "")], args("-k url")));
        let (items, _) = walk(Getopt::new("k", Order::Apr, &args("-k- url")));
        assert_eq!(items, [letter('k', ""), Item::UnknownLetter('-')]);
        assert_eq!(items[1].apr_complaint("ab"), None);
    }

    #[test]
    fn what_is_unknown_or_lacks_its_value_is_told_as_each_tells_it() {
        let (items, _) = walk(Getopt::new(":n:k", Order::Apr, &args("-kQ: -n")));
        let expected = [
            letter('k', ""),
            Item::UnknownLetter('Q'),
            Item::UnknownLetter(':'),
            Item::NoValue('n'),
        ];
        assert_eq!(items, expected);
        let apr: Vec<_> = items.iter().filter_map(|item| item.apr_complaint("ab")).collect();
        assert_eq!(apr[0], "ab: illegal option -- Q\n");
        assert_eq!(apr[2], "ab: option requires an argument -- n\n");
        let gnu: Vec<_> = items.iter().filter_map(|item| item.gnu_complaint("wrk")).collect();
        assert_eq!(gnu[0], "wrk: invalid option -- 'Q'\n");
        assert_eq!(gnu[2], "wrk: option requires an argument -- 'n'\n");
    }

    #[test]
    fn names_may_be_abbreviated_as_long_as_they_are_one() {
        let names = [
            ("reps", Takes::Value),
            ("rc", Takes::Value),
            ("log", Takes::Perhaps),
            ("quiet", Takes::Nothing),
        ];
        let line = "--rep=3 --rc file u --log --log=x --q --r=1 --quiet=1 --zap=1 --reps";
        let words = args(line);
        let (items, operands) =
            walk(Getopt::new("l::", Order::Permuted, &words).with_names(&names));
        let name = |name: &str, value: &str| {
            Item::Name(name.to_owned(), (!value.is_empty()).then(|| value.to_owned()))
        };
        let expected = [
            name("reps", "3"),
            name("rc", "file"),
            name("log", ""),
            name("log", "x"),
            name("quiet", ""),
            Item::Ambiguous("r=1".to_owned(), args("reps rc")),
            Item::SurplusValue("quiet".to_owned()),
            Item::UnknownName("zap=1".to_owned()),
            Item::NoValueOf("reps".to_owned()),
        ];
        assert_eq!(items, expected);
        assert_eq!(operands, ["u"]);
        let words = args("-lfile -l file");
        let (items, operands) = walk(Getopt::new("l::", Order::Permuted, &words));
        assert_eq!(items, [letter('l', "file"), letter('l', "")]);
        assert_eq!(operands, ["file"]);
    }
}
