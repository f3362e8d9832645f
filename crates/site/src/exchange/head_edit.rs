//! Changes to the head of an answer that was written already: fields that rules set, add or remove.

use std::io::Write as _;

use crate::hosts::{Edit, EditKind};

/// Changes a field of the head that begins at `head_at` and has not ended yet. That the field breaks nothing was
/// checked when the rule was read.
pub(super) fn edit_head(out: &mut Vec<u8>, head_at: usize, edit: &Edit) {
    let name = edit.name.as_bytes();
    if !matches!(edit.how, EditKind::Add(_)) {
        let is_it = |line: &[u8]| {
            line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
        };
        let lines = out[head_at..].split_inclusive(|&byte| byte == b'\n');
        let kept = lines.filter(|line| !is_it(line)).collect::<Vec<_>>().concat();
        out.truncate(head_at);
        out.extend_from_slice(&kept);
    }
    if let EditKind::Set(value) | EditKind::Add(value) = &edit.how {
        write!(out, "{}: {value}\r\n", edit.name).expect("a Vec takes every write");
    }
}
