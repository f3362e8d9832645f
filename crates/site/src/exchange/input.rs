//! The bytes of a connection that were received and not used yet. Owns their buffer and its growth. Start
//! reading at [`Input::room`].

/// First size of a buffer: most requests fit into it, and several if a client pipelines.
const ROOM_FIRST: usize = 4096;

/// The least room for a read, as far as the bound allows it.
const ROOM_MIN: usize = 512;

/// A buffer that grows up to its bound; the bytes from `start` to `end` are unused.
#[derive(Debug)]
pub(super) struct Input {
    /// Its length is the room that there is.
    buffer: Vec<u8>,
    /// Where the unused bytes begin; at most `end`.
    start: usize,
    /// Where they end; at most `buffer.len()`.
    end: usize,
    len_max: usize,
}

impl Input {
    /// For at most `len_max` unused bytes. The buffer is allocated for the first read, unless one is lent before.
    pub(super) fn new(len_max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, end: 0, len_max }
    }

    /// Takes the buffer out of `spare`, unless it has one.
    #[inline]
    pub(super) fn lend(&mut self, spare: &mut Vec<u8>) {
        if self.buffer.is_empty() {
            std::mem::swap(&mut self.buffer, spare);
        }
    }

    /// Gives its buffer to `spare`, if there is nothing in it; one that has grown is freed.
    #[inline]
    pub(super) fn take_back(&mut self, spare: &mut Vec<u8>) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            let buffer = std::mem::take(&mut self.buffer);
            if buffer.len() <= ROOM_FIRST && spare.is_empty() {
                *spare = buffer;
            }
        }
    }

    /// Empty again, and no larger than at first.
    pub(super) fn reset(&mut self) {
        (self.start, self.end) = (0, 0);
        self.buffer.truncate(ROOM_FIRST);
        self.buffer.shrink_to(ROOM_FIRST);
    }

    /// What was received and not used.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Makes room to read into if there is little. If there is none afterwards, the bound is reached.
    pub(super) fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end >= ROOM_MIN {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() - self.end < ROOM_MIN {
            let wanted = (self.buffer.len() * 2).min(self.len_max);
            self.buffer.resize(wanted.max(self.buffer.len()), 0);
        }
    }

    /// Where the next bytes go.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer.resize(ROOM_FIRST.min(self.len_max), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// `count` bytes were put into the room.
    pub(super) fn filled(&mut self, count: usize) {
        assert!(
            count <= self.buffer.len() - self.end,
            "more bytes were read than there was room for"
        );
        self.end += count;
    }

    /// The first `count` unused bytes were used.
    pub(super) fn used(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "more bytes were used than there were");
        self.start += count;
    }

    /// Takes out `count` bytes that follow the first `after` ones.
    pub(super) fn drop_after(&mut self, after: usize, count: usize) {
        let at = self.start + after;
        self.buffer.copy_within(at + count..self.end, at);
        self.end -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(input: &mut Input, bytes: &[u8]) {
        input.make_room();
        input.room()[..bytes.len()].copy_from_slice(bytes);
        input.filled(bytes.len());
    }

    #[test]
    fn unused_bytes_survive_growth_and_moves() {
        let mut input = Input::new(10_000);
        for round in 0..20u8 {
            put(&mut input, &[round; 400]);
        }
        assert_eq!(input.bytes().len(), 8000);
        input.used(7600);
        assert_eq!(input.bytes(), [19; 400]);
        put(&mut input, &[20; 400]);
        assert_eq!(input.bytes()[400..], [20; 400]);
        input.reset();
        assert!(input.is_empty() && input.buffer.capacity() < 10_000);
    }

    #[test]
    fn a_buffer_is_lent_while_there_is_nothing_in_it() {
        let mut spare = Vec::new();
        let mut inputs = [Input::new(10_000), Input::new(10_000)];
        for input in &mut inputs {
            input.lend(&mut spare);
            input.room()[..4].copy_from_slice(b"head");
            input.filled(4);
            input.used(4);
            input.take_back(&mut spare);
            assert_eq!((input.buffer.capacity(), spare.len()), (0, ROOM_FIRST));
        }
        let [first, second] = &mut inputs;
        first.lend(&mut spare);
        put(first, b"he");
        first.take_back(&mut spare);
        second.lend(&mut spare);
        put(second, b"GET");
        assert_eq!((first.bytes(), second.bytes()), (&b"he"[..], &b"GET"[..]));
    }

    #[test]
    fn at_the_bound_there_is_no_room() {
        let mut input = Input::new(600);
        put(&mut input, &[1; 600]);
        input.make_room();
        assert!(input.room().is_empty());
    }

    #[test]
    fn a_body_is_taken_out_between_two_heads() {
        let mut input = Input::new(600);
        put(&mut input, b"..head1bodyhead2");
        input.used(2);
        input.drop_after(5, 4);
        assert_eq!(input.bytes(), b"head1head2");
    }
}
