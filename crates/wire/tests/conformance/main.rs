//! Both roles against RFC 9112: each rule as a case, and random messages, whole and wrong, against a
//! slow reader and against themselves in other pieces. Start reading at `replies` and `requests`.

mod discarding;
mod messages;
mod oracle;
mod replies;
mod reply_fuzz;
mod reply_oracle;
mod requests;
