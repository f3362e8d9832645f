//! A command line, divided into words as a POSIX shell divides it (and `$'...'` as bash, ksh and zsh do).
//! Owns quoting. Start reading at [`commands`]. Source: POSIX.1-2024, 2.2 (quoting) and 2.3 (token
//! recognition); bash(1), QUOTING.
//!
//! Nothing is ever executed or substituted: anything that a shell would replace is refused.

use std::iter::Peekable;
use std::str::Chars;

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// Line in which it begins, from 1.
    pub(super) line: usize,
    /// Its words, at least one. Bytes, since `$'\xff'` is one.
    pub(super) words: Vec<Vec<u8>>,
}

/// What could not be parsed, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellError {
    pub(super) line: usize,
    pub(super) what: String,
}

/// The commands of a text: they end with a line, a `;` or `&&`.
pub(super) fn commands(text: &str) -> Result<Vec<Command>, ShellError> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1, word: None };
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut line = 1;
    loop {
        let ended = reader.token(&mut words, &mut line)?;
        if ended.is_some() && !words.is_empty() {
            commands.push(Command { line, words: std::mem::take(&mut words) });
        }
        if ended == Some(End::OfText) {
            return Ok(commands);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    OfCommand,
    OfText,
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    /// The word that is being read; an empty one is a word too (`''`).
    word: Option<Vec<u8>>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn push(&mut self, c: char) {
        let mut buf = [0; 4];
        let bytes = c.encode_utf8(&mut buf).as_bytes();
        self.word.get_or_insert_default().extend_from_slice(bytes);
    }

    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, ShellError> {
        Err(ShellError { line: self.line, what: what.into() })
    }

    /// Reads one character of a command, or one quoted piece. If a word ends there, it goes into `words`; `line`
    /// becomes the line of the first word.
    fn token(
        &mut self,
        words: &mut Vec<Vec<u8>>,
        line: &mut usize,
    ) -> Result<Option<End>, ShellError> {
        let before = self.line;
        let next = self.next();
        if matches!(next, None | Some(' ' | '\t' | '\r' | '\n' | ';' | '&' | '|')) {
            words.extend(self.word.take());
        } else if words.is_empty() && self.word.is_none() {
            *line = before;
        }
        match next {
            None => return Ok(Some(End::OfText)),
            Some(' ' | '\t' | '\r') => {}
            Some('\n' | ';') => return Ok(Some(End::OfCommand)),
            Some('&') if self.rest.next_if_eq(&'&').is_some() => return Ok(Some(End::OfCommand)),
            Some(c @ ('&' | '|' | '<' | '>' | '(' | ')')) => {
                let what =
                    "a shell would do more than run the command there: remove it, or quote it";
                return self.refuse(format!("`{c}` stands outside quotes: {what}"));
            }
            Some('#') if self.word.is_none() => {
                while self.rest.next_if(|&c| c != '\n').is_some() {}
            }
            Some('~') if self.word.is_none() => {
                return self.refuse("a shell would put your home folder for `~`: write it out");
            }
            Some('\\') => self.escaped()?,
            Some('\'') => self.single()?,
            Some('"') => self.double()?,
            Some('$') => self.dollar(false)?,
            Some('`') => return self.substitution("`"),
            Some(c) => self.push(c),
        }
        Ok(None)
    }

    /// After a backslash outside quotes; at the end of a line it joins the next line.
    fn escaped(&mut self) -> Result<(), ShellError> {
        if self.rest.peek() == Some(&'\r') {
            let mut ahead = self.rest.clone();
            ahead.next();
            if ahead.peek() == Some(&'\n') {
                self.next();
            }
        }
        match self.next() {
            None | Some('\n') => {}
            Some(c) => self.push(c),
        }
        Ok(())
    }

    fn single(&mut self) -> Result<(), ShellError> {
        self.word.get_or_insert_default();
        let line = self.line;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(c) => self.push(c),
                None => return open(line, "'"),
            }
        }
    }

    fn double(&mut self) -> Result<(), ShellError> {
        self.word.get_or_insert_default();
        let line = self.line;
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                    None => return open(line, "\""),
                },
                Some('$') => self.dollar(true)?,
                Some('`') => return self.substitution("`"),
                Some(c) => self.push(c),
                None => return open(line, "\""),
            }
        }
    }

    /// After a dollar sign: a substitution is refused, `$'` and `$"` quote; otherwise it is a plain dollar sign.
    fn dollar(&mut self, in_quotes: bool) -> Result<(), ShellError> {
        match self.rest.peek() {
            Some('\'') if !in_quotes => {
                self.next();
                self.ansi()
            }
            // The locale translates this text, and has no translation.
            Some('"') if !in_quotes => Ok(()),
            Some(&c) if c.is_ascii_alphanumeric() || "_{([?#@*!$-".contains(c) => {
                self.substitution(&format!("${c}"))
            }
            _ => {
                self.push('$');
                Ok(())
            }
        }
    }

    fn substitution<T>(&self, what: &str) -> Result<T, ShellError> {
        self.refuse(format!(
            "a shell would put something else for `{what}...`: write that, or quote it with '...'"
        ))
    }

    /// `$'...'`, after its opening quote.
    fn ansi(&mut self) -> Result<(), ShellError> {
        self.word.get_or_insert_default();
        let line = self.line;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some('\\') => self.ansi_escape(line)?,
                Some(c) => self.push(c),
                None => return open(line, "'"),
            }
        }
    }

    fn ansi_escape(&mut self, line: usize) -> Result<(), ShellError> {
        let Some(c) = self.next() else { return open(line, "'") };
        let code = match c {
            'a' => 0x07,
            'b' => 0x08,
            'e' | 'E' => 0x1b,
            'f' => 0x0c,
            'n' => b'\n'.into(),
            'r' => b'\r'.into(),
            't' => b'\t'.into(),
            'v' => 0x0b,
            '\\' | '\'' | '"' | '?' => u32::from(c),
            '0'..='7' => self.digits(8, 2, c.to_digit(8).unwrap_or(0)) & 0xff,
            'x' if self.is_hex() => self.digits(16, 2, 0),
            'u' | 'U' if self.is_hex() => {
                let code = self.digits(16, if c == 'u' { 4 } else { 8 }, 0);
                let Some(c) = char::from_u32(code).filter(|&c| c != '\0') else {
                    return self.refuse(format!("`\\{c}{code:x}` in $'...' is no character"));
                };
                self.push(c);
                return Ok(());
            }
            'c' => match self.next() {
                Some(c) if c.is_ascii() => u32::from(c.to_ascii_uppercase()) & 0x1f,
                _ => return self.refuse("`\\c` in $'...' needs a letter after it"),
            },
            // Unknown ones stay as they are.
            _ => {
                self.push('\\');
                self.push(c);
                return Ok(());
            }
        };
        if code == 0 {
            return self.refuse("a byte 0 in $'...' would end the word: no argument can hold one");
        }
        self.word.get_or_insert_default().push(code as u8);
        Ok(())
    }

    fn is_hex(&mut self) -> bool {
        self.rest.peek().is_some_and(char::is_ascii_hexdigit)
    }

    fn digits(&mut self, radix: u32, n_max: usize, mut code: u32) -> u32 {
        for _ in 0..n_max {
            let Some(c) = self.rest.next_if(|c| c.is_digit(radix)) else { break };
            code = code.wrapping_mul(radix).wrapping_add(c.to_digit(radix).unwrap_or(0));
        }
        code
    }
}

fn open<T>(line: usize, quote: &str) -> Result<T, ShellError> {
    let what =
        format!("the quote `{quote}` that opens here is not closed: was the line copied whole?");
    Err(ShellError { line, what })
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        let mut commands = commands(text).unwrap_or_else(|e| panic!("{text}: {}", e.what));
        assert_eq!(commands.len(), 1, "{text}");
        commands.remove(0).words
    }

    /// The words after `x` as bash splits them.
    fn words_of_bash(text: &str) -> Option<Vec<Vec<u8>>> {
        let script = format!("x() {{ printf '%s\\0' \"$@\"; }}\n{text}");
        let mut bash = Process::new("bash");
        let output = bash.args(["--norc", "-c", &script]).env("LC_ALL", "C.UTF-8").output().ok()?;
        assert!(output.status.success(), "{script}: {output:?}");
        let mut words: Vec<_> =
            output.stdout.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        assert_eq!(words.pop(), Some(Vec::new()));
        Some(words)
    }

    const CASES: [(&str, &[&[u8]]); 11] = [
        ("x a  b\\ c ''", &[b"a", b"b c", b""]),
        ("x 'a\\'b", &[b"a\\b"]),
        ("x \"a\\\"\\$\\`\\\\\\n$ %\"", &[b"a\"$`\\\\n$ %"]),
        ("x a\\\n  b \\\n c\"d\\\ne\"", &[b"a", b"b", b"cde"]),
        ("x $'a\\n\\t\\x41\\101\\'\\\\\\\"\\e\\q\\xff\\cA'", &[b"a\n\tAA'\\\"\x1b\\q\xff\x01"]),
        ("x $'\\u00e9\\U0001F600'z", &["é😀z".as_bytes()]),
        ("x a$ $ $\"b\" # no 'comment\n", &[b"a$", b"$", b"b"]),
        ("x a#b 'multi\nline'", &[b"a#b", b"multi\nline"]),
        ("x http://h/?a=b\\&c", &[b"http://h/?a=b&c"]),
        ("x $'\\7778'", &[b"\xff8"]),
        ("x \"\"a''", &[b"a"]),
    ];

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in CASES {
            assert_eq!(words(text)[1..], expected.iter().map(|w| w.to_vec()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bash_agrees() {
        for (text, _) in CASES {
            let Some(expected) = words_of_bash(text) else {
                return skips::note("there is no bash to ask");
            };
            assert_eq!(words(text)[1..], expected, "{text}");
        }
    }

    #[test]
    fn commands_end_with_lines_and_what_a_shell_would_do_is_refused() {
        let found = commands("\n a b; c \\\n d\n\n# e\nf && g 'h\n'\n").unwrap();
        let lines: Vec<_> = found.iter().map(|c| (c.line, c.words.len())).collect();
        assert_eq!(lines, [(2, 2), (2, 2), (6, 1), (6, 2)]);
        assert_eq!(words("a \\\r\n b\r\n").len(), 2);
        let cases = [
            ("a\nb 'c", 2, "not closed"),
            ("a \"$HOME\"", 1, "`$H...`"),
            ("a $(b)", 1, "`$(...`"),
            ("a `b`", 1, "``...`"),
            ("a | b", 1, "`|` stands outside"),
            ("a &", 1, "`&` stands outside"),
            ("a >b", 1, "`>` stands outside"),
            ("a ~/b", 1, "home"),
            ("a $'\\0'", 1, "byte 0"),
            ("a $'\\ud800'", 1, "no character"),
        ];
        for (text, line, part) in cases {
            let error = commands(text).expect_err(text);
            assert!(error.line == line && error.what.contains(part), "{text}: {error:?}");
        }
    }

    /// A word, written in a way that the number chooses.
    fn quoted(word: &str, way: u8) -> String {
        let each = |f: &dyn Fn(char) -> String| word.chars().map(f).collect::<String>();
        match way % 4 {
            0 => format!("'{}'", word.replace('\'', "'\\''")),
            1 => {
                let is_special = |c| "$`\"\\".contains(c);
                format!(
                    "\"{}\"",
                    each(&|c| format!("{}{c}", if is_special(c) { "\\" } else { "" }))
                )
            }
            2 => {
                let bytes: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
                format!("$'{bytes}'")
            }
            _ if word.is_empty() => "''".to_owned(),
            _ => each(&|c| if c == '\n' { "'\n'".to_owned() } else { format!("\\{c}") }),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_is_quoted_reads_back_here_and_in_bash(
            list in prop::collection::vec(("[ -~é\n\t]{0,8}|\\PC{0,3}", any::<u8>()), 1..6),
        ) {
            let words_written: Vec<Vec<u8>> =
                list.iter().map(|(word, _)| word.as_bytes().to_vec()).collect();
            let parts: Vec<String> = list.iter().map(|(word, way)| quoted(word, *way)).collect();
            let text = format!("x {}", parts.join(" "));
            prop_assert_eq!(&words(&text)[1..], &words_written[..], "{}", &text);
            if let Some(of_bash) = words_of_bash(&text) {
                prop_assert_eq!(of_bash, words_written, "{}", text);
            }
        }
    }
}
