//! The picture for terminals that support only ASCII: each drawn character becomes the nearest ASCII character. Start
//! reading at [`without_unicode`].

use ratatui::buffer::Buffer;

/// Replaces whatever is not ASCII.
pub(super) fn without_unicode(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let nearest = cell.symbol().chars().next().map_or(' ', nearest);
            cell.set_char(nearest);
        }
    }
}

fn nearest(c: char) -> char {
    match c {
        '─' | '━' => '-',
        '│' | '┤' => '|',
        '└' | '┘' | '┌' | '┐' | '┴' => '+',
        '█' | '▉' | '▊' | '▋' | '▌' => '#',
        '▍' | '▎' | '▏' | '·' => '.',
        '×' => 'x',
        '…' => '~',
        '░' => '.',
        '▁' | '▂' => '_',
        '▃' | '▄' | '▅' => ':',
        '▆' | '▇' => '|',
        '\u{2800}'..='\u{28ff}' => braille(c as u32 - 0x2800),
        _ => '?',
    }
}

/// Depends on whether there are dots in the upper and in the lower half (Unicode numbers the dots of a column 1, 2, 3
/// and 7, those of the next 4, 5, 6 and 8).
fn braille(dots: u32) -> char {
    const UPPER: u32 = 0b0001_1011;
    match (dots & UPPER != 0, dots & !UPPER != 0) {
        (false, false) => ' ',
        (true, false) => '\'',
        (false, true) => '.',
        (true, true) => ':',
    }
}
