//! `encoding`: answers are in gzip though nobody asked for it, so that two servers seem to send the same and
//! do not. Start reading at [`Encoding`].
//!
//! Each 200 that has a body and no coding yet is compressed for each request, at the level of `compression.gzip_level`,
//! which costs what it costs Apache's mod_deflate. Its validators stay as they are. A file of more than 8 MiB is sent
//! as it is, and so are answers to HEAD, ranges and what a gateway answers.

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "encoding",
    forms: "encoding=gzip (answers are in gzip though nobody asked for it)",
    is_unique: true,
    read: |spec| match spec.first("`gzip`")? {
        "gzip" => Ok(Arc::new(Encoding)),
        other => Err(format!("`{other}` is not gzip")),
    },
};

/// All answers.
#[derive(Debug)]
struct Encoding;

impl Effect for Encoding {
    fn flaw(&self, _: Draw, _: AnsweredBefore, flaws: &mut Flaws) {
        flaws.is_coded = true;
    }
}
