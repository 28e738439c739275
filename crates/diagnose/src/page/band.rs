use crate::Class;

/// A piece of the band: its beginning and end in microseconds, and its class.
pub type Piece = (u64, u64, Class);

/// Maximum number of pieces kept individually.
const PIECES: usize = 20_000;
/// Above that, the time is divided into this number of parts, each with one piece per class.
const PARTS: u64 = 3000;

/// The class at each moment. The total time of each class is exact, and the memory does not grow with the
/// connection.
#[derive(Debug)]
pub struct Band {
    lasts: u64,
    pieces: Vec<Piece>,
    /// Number of pieces at which the band is coarsened.
    limit: usize,
}

impl Band {
    /// An empty band, `lasts` microseconds long.
    pub fn new(lasts: u64) -> Band {
        Band { lasts, pieces: Vec::new(), limit: PIECES }
    }

    /// Adds a piece. Pieces must not overlap, and must be nearly in the order of time.
    pub fn add(&mut self, piece: Piece) {
        push(&mut self.pieces, piece);
        if self.pieces.len() >= self.limit {
            self.sort();
            self.coarsen();
            // Coarsening takes time: double the limit, so that as many pieces come before the next one.
            self.limit = PIECES.max(2 * self.pieces.len());
        }
    }

    /// Finishes the band: sorts its pieces.
    pub fn end(&mut self) {
        self.sort();
    }

    /// The pieces; in the order of time once it has ended.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn sort(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_by_key(|(from, ..)| *from);
        pieces.into_iter().for_each(|piece| push(&mut self.pieces, piece));
    }

    /// Merges the pieces of each class that begin within the same part of the time.
    fn coarsen(&mut self) {
        let lasts = u128::from(self.lasts.max(1));
        let part = |from: u64| u128::from(from) * u128::from(PARTS) / lasts;
        let pieces = std::mem::take(&mut self.pieces);
        for alike in pieces.chunk_by(|a, b| part(a.0) == part(b.0)) {
            let mut times: Vec<(Class, u64)> = Vec::new();
            for (from, to, class) in alike {
                match times.iter_mut().find(|(known, _)| known == class) {
                    Some((_, time)) => *time += to - from,
                    None => times.push((*class, to - from)),
                }
            }
            let mut at = alike.first().map_or(0, |(from, ..)| *from);
            for (class, time) in times {
                push(&mut self.pieces, (at, at + time, class));
                at += time;
            }
        }
    }
}

/// Appends a piece, or extends the last one if the piece continues it.
fn push(pieces: &mut Vec<Piece>, (from, to, class): Piece) {
    match pieces.last_mut() {
        Some((_, end, last)) if *end == from && *last == class => *end = to,
        _ if from < to => pieces.push((from, to, class)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 300,000 pieces of 1, 2 or 3 µs, of three classes in turn.
    #[test]
    fn a_long_band_stays_small_and_keeps_each_classs_time() {
        let classes = [Class::Congestion, Class::Stalled, Class::Idle];
        let mut band = Band::new(600_000);
        let mut at = 0;
        for n in 0..300_000 {
            let time = 1 + n % 3;
            band.add((at, at + time, classes[n as usize % 3]));
            at += time;
        }
        band.end();
        let pieces = band.pieces();
        assert!(pieces.len() < PIECES, "{}", pieces.len());
        assert!(pieces.windows(2).all(|pair| pair[0].1 <= pair[1].0), "they overlap");
        for (n, class) in classes.into_iter().enumerate() {
            let of = pieces.iter().filter(|piece| piece.2 == class);
            assert_eq!(of.map(|(from, to, _)| to - from).sum::<u64>(), 100_000 * (n as u64 + 1));
        }
    }

    #[test]
    fn a_late_piece_is_inserted_in_order() {
        let mut band = Band::new(10);
        for piece in [(0, 3, Class::Idle), (6, 10, Class::Idle), (3, 6, Class::Stalled)] {
            band.add(piece);
        }
        band.end();
        let expected = [(0, 3, Class::Idle), (3, 6, Class::Stalled), (6, 10, Class::Idle)];
        assert_eq!(band.pieces(), expected);
    }
}
