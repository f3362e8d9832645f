//! Both roles against RFC 9112: each rule as a case, and random valid and invalid messages. The results are compared
//! with a slow reader and with other divisions of the bytes. Start reading at `replies` and `requests`.

mod discarding;
mod messages;
mod oracle;
mod replies;
mod reply_fuzz;
mod reply_oracle;
mod requests;
