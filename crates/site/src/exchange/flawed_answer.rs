//! Answers that are wrong on purpose, as planted faults say: another status, an empty or coded body, a length
//! that is not the body's. Owns how a right answer is made wrong; see also `fault`. Start reading at
//! [`Answerer::flawed_answer`].
//!
//! A right answer is made first and then changed, whatever that costs. So the site, its rules and its caches do the
//! same as without a fault.

use super::answer::{Answerer, Connection, WrittenAnswer};
use super::head_edit::edit_head;
use super::request_summary::{Method, RequestSummary};
use crate::coding::Coding;
use crate::fault::Flaws;
use crate::hosts::{Edit, EditKind};

/// The largest body that is coded or replaced.
const BODY_MAX: u64 = 8 * 1024 * 1024;

impl Answerer<'_> {
    /// The answer to a request if faults are planted. Afterwards `flaws` says whether the connection ends with it.
    pub(super) fn flawed_answer(
        &mut self,
        flaws: &mut Flaws,
        head: &[u8],
        summary: &RequestSummary,
        conn: Connection,
    ) -> WrittenAnswer {
        if let Some(status) = flaws.status {
            return self.error(status, summary, conn);
        }
        // It is the only one in the output: with faults each is sent before the next is made.
        let mut written = self.correct_answer(head, summary, conn);
        let is_whole =
            written.status == 200 && matches!(summary.method, Method::Get | Method::Head);
        if flaws.is_empty && is_whole {
            self.replace_body(&[], None);
            written.body_bytes = 0;
        } else if flaws.is_coded && is_whole && written.body_bytes > 0 {
            written = self.coded(written);
        } else if flaws.is_zeroed && is_whole && (1..=BODY_MAX).contains(&written.body_bytes) {
            self.replace_body(&vec![0; written.body_bytes as usize], None);
        }
        if flaws.is_short && written.body_bytes > 0 && written.status / 100 == 2 {
            let (head_at, body_at) = self.output.open();
            self.set_fields(head_at, body_at, &[edit("Content-Length", written.body_bytes + 1)]);
            flaws.ends = true;
        }
        written
    }

    /// Puts the body that is in the output into gzip, unless it is encoded already or too long.
    fn coded(&mut self, written: WrittenAnswer) -> WrittenAnswer {
        let (head_at, body_at) = self.output.open();
        let fields = self.output.buffer[head_at..body_at].to_ascii_lowercase();
        let is_coded = fields.windows(18).any(|name| name == b"\ncontent-encoding:");
        if is_coded || written.body_bytes > BODY_MAX {
            return written;
        }
        let levels = self.site.config.presentation.compression.clone().unwrap_or_default();
        // If its file has become shorter, or memory is short, the answer is left as it is.
        let body = self.output.body_bytes(body_at);
        let coded = body.and_then(|body| Coding::Gzip.encode(&body, &levels));
        let Ok(coded) = coded else { return written };
        self.replace_body(&coded, Some(edit("Content-Encoding", Coding::Gzip.name())));
        WrittenAnswer { body_bytes: coded.len() as u64, ..written }
    }

    /// Replaces the body behind the head that is in the output.
    fn replace_body(&mut self, body: &[u8], field: Option<Edit>) {
        let (head_at, body_at) = self.output.open();
        self.output.drop_body(body_at);
        let length = edit("Content-Length", body.len());
        let fields: Vec<Edit> = std::iter::once(length).chain(field).collect();
        self.set_fields(head_at, body_at, &fields);
        self.output.buffer.extend_from_slice(body);
    }

    /// Sets these fields in the head between the two positions.
    fn set_fields(&mut self, head_at: usize, body_at: usize, fields: &[Edit]) {
        let out = &mut self.output.buffer;
        let behind = out.split_off(body_at);
        out.truncate(body_at - b"\r\n".len());
        fields.iter().for_each(|field| edit_head(out, head_at, field));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&behind);
    }
}

fn edit(name: &str, value: impl ToString) -> Edit {
    Edit { name: name.into(), how: EditKind::Set(value.to_string().into()) }
}
