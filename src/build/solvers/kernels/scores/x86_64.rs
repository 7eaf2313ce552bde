//! Vector kernels of scores: AVX2 and AVX-512.
//!
//! A byte permutation of two vectors (VBMI) does in one instruction what a class of moves does to 64 columns, and a 64
//! by 64 byte transpose is 64 loads of quarter rows and 256 shuffles. `bench` measures both.

use super::{Destination, RowChunk, RowTask, SlabWork, StagedChunk, UNIT_ROWS, lanes};
use crate::huge_pages::PAD;
use crate::kernels::tables::{CHUNK, Gather, GatherPiece, PackedMove};
use std::arch::x86_64::*;

/// See [`crate::Kernel::recompute`].
pub(crate) fn recompute_avx2(task: &RowTask, staged: &mut [i8]) {
    // SAFETY: `has_avx2` was true, else this kernel is not chosen.
    unsafe { recompute_rows_avx2(task, staged) }
}

#[target_feature(enable = "avx2,popcnt")]
fn recompute_rows_avx2(task: &RowTask, staged: &mut [i8]) {
    super::recompute_rows(task, staged, |window, lanes| {
        let mut taken = [0; CHUNK];
        for (lanes, taken) in lanes.0.as_chunks::<16>().0.iter().zip(taken.as_chunks_mut::<16>().0) {
            // Lanes do not descend, so the last of sixteen reaches farthest.
            let first = lanes[0] & 127;
            let steps = (lanes[15] - lanes[0]) as usize / 16;
            // SAFETY: a window has sixteen bytes more than the farthest lane can begin at: 127 + 16 < 144.
            unsafe {
                let from = window.as_ptr().add(first as usize);
                let lanes = _mm_loadu_si128(lanes.as_ptr().cast());
                let mut lanes = _mm_sub_epi8(lanes, _mm_set1_epi8(first as i8));
                let mut all = _mm_setzero_si128();
                for step in 0..=steps {
                    // A shuffle gives 0 where the top bit is set: where the lane is not among these sixteen bytes.
                    let these = _mm_adds_epu8(lanes, _mm_set1_epi8(0x70));
                    let bytes = _mm_loadu_si128(from.add(step * 16).cast());
                    all = _mm_or_si128(all, _mm_shuffle_epi8(bytes, these));
                    lanes = _mm_sub_epi8(lanes, _mm_set1_epi8(16));
                }
                _mm_storeu_si128(taken.as_mut_ptr().cast(), all);
            }
        }
        taken
    });
}

/// See [`crate::kernels::apply`]; for 64 rows.
///
/// # Safety
/// As [`apply_avx512`].
pub(crate) unsafe fn apply_avx2(from: StagedChunk, array: *mut i8, to: Destination, changed: &mut [u64; CHUNK]) -> u64 {
    assert!(from.scores.len() >= (UNIT_ROWS - 1) * from.stride + CHUNK);
    assert!(to.columns <= CHUNK && to.rows == UNIT_ROWS);
    // SAFETY: `has_avx2` was true, else this kernel is not chosen; the caller guarantees the rest.
    unsafe { apply_columns_avx2(from, array.add(to.offset), to, changed) }
}

#[target_feature(enable = "avx2,popcnt")]
unsafe fn apply_columns_avx2(from: StagedChunk, array: *mut i8, to: Destination, changed: &mut [u64; CHUNK]) -> u64 {
    let (staged, stride) = (from.scores.as_ptr(), from.stride);
    let mut changes = 0;
    for rows in 0..4 {
        let wanted = (from.wanted >> (rows * 16)) as u16;
        if wanted == 0 {
            continue;
        }
        let bits = _mm_set_epi64x(-0x7fbf_dfef_f7fb_fdff, -0x7fbf_dfef_f7fb_fdff);
        let bytes = _mm_set_epi64x(0x0101_0101_0101_0101, 0);
        let ours = _mm_and_si128(_mm_shuffle_epi8(_mm_cvtsi32_si128(i32::from(wanted)), bytes), bits);
        let ours = _mm_cmpeq_epi8(ours, bits);
        for quarter in 0..to.columns.div_ceil(16) {
            // SAFETY: 64 staged rows of a chunk are readable, see `apply_avx2`.
            let columns = unsafe { transpose_sixteen(staged.add(rows * 16 * stride + quarter * 16), stride) };
            for (lane, &new) in columns.iter().enumerate().take(to.columns - (quarter * 16).min(to.columns)) {
                let column = quarter * 16 + lane;
                // SAFETY: the caller guarantees exclusive access to 64 bytes of each column, including these sixteen.
                unsafe {
                    let at = array.add(column * to.stride + rows * 16).cast::<__m128i>();
                    let old = _mm_loadu_si128(at);
                    let new = _mm_blendv_epi8(old, new, ours);
                    let same = _mm_movemask_epi8(_mm_cmpeq_epi8(old, new)) as u16;
                    if same != u16::MAX {
                        _mm_storeu_si128(at, new);
                        changed[column] |= u64::from(!same) << (rows * 16);
                        changes += u64::from((!same).count_ones());
                    }
                }
            }
        }
    }
    changes
}

/// Sixteen columns of sixteen staged rows, each column one vector.
#[target_feature(enable = "avx2")]
unsafe fn transpose_sixteen(from: *const i8, stride: usize) -> [__m128i; 16] {
    // SAFETY: guaranteed by the caller.
    let mut a: [__m128i; 16] = std::array::from_fn(|row| unsafe { _mm_loadu_si128(from.add(row * stride).cast()) });
    for _ in 0..4 {
        let mut b = a;
        for i in 0..8 {
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        }
        a = b;
    }
    a
}

/// See [`crate::Kernel::recompute`].
pub(crate) fn recompute_avx512(task: &RowTask, staged: &mut [i8]) {
    let &RowTask { work, unit, values, floor, .. } = task;
    assert!(floor.scores.len() >= (unit.rows - 1) * floor.stride + unit.chunks * CHUNK, "floors are padded");
    assert!(staged.len() >= unit.staged_bytes());
    assert!(unit.chunk + unit.chunks <= work.columns.div_ceil(CHUNK), "a unit lies inside its slab");
    for child in work.children.iter().flatten() {
        // Row ranks and window bases are below the number of halves of the child slab, see `Tables`.
        assert!(child.offset + child.bytes + PAD <= values.len(), "scores are padded by a window");
        let pieces = &child.gather.pieces[..child.gather.first[unit.chunk + unit.chunks] as usize];
        assert!(pieces.last().is_none_or(|last| (last.base as usize) < child.end), "bases ascend");
    }
    // SAFETY: `has_avx512` was true, else this kernel is not chosen. Every window starts inside the array: row ranks
    // and window bases come from `Tables`, built from ranks of halves for the same slabs, and are among the columns in
    // the array. A window is no longer than the padding. This removes bounds checks from a loop of five instructions.
    unsafe { recompute_rows(task, staged) }
}

/// See [`crate::Kernel::recompute_row_chunk`].
pub(crate) fn recompute_row_chunk_avx512(work: &SlabWork, at: RowChunk, values: &[i8]) -> [i8; CHUNK] {
    // SAFETY: `has_avx512` was true, else this kernel is not chosen.
    unsafe { recompute_row_chunk(work, at, values) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2,popcnt")]
fn recompute_row_chunk(work: &SlabWork, at: RowChunk, values: &[i8]) -> [i8; CHUNK] {
    let ((row, floor), chunk) = (work.row_chunk(at), at.chunk as usize);
    let mut least = _mm512_set1_epi8(i8::MAX);
    for &to in row.iter().take_while(|&&to| to != PackedMove::NONE) {
        let child = work.children[to.class()].as_ref().expect("every class of a row has a child slab");
        let gather = child.gather;
        let scores = &values[child.offset + to.rank() as usize * child.stride..];
        for piece in &gather.pieces[gather.first[chunk] as usize..gather.first[chunk + 1] as usize] {
            let window = &scores[piece.base as usize..][..2 * CHUNK];
            // SAFETY: a window has two vectors, and lanes are one, and aligned.
            let taken = unsafe {
                let window = window.as_ptr().cast::<__m512i>();
                let low = _mm512_loadu_si512(window);
                if piece.lanes == GatherPiece::STRAIGHT {
                    low
                } else {
                    let lanes = &gather.lanes[piece.lanes as usize];
                    let lanes = _mm512_load_si512((&raw const *lanes).cast());
                    _mm512_permutex2var_epi8(low, lanes, _mm512_loadu_si512(window.add(1)))
                }
            };
            least = _mm512_mask_min_epi8(least, piece.mask, least, taken);
        }
    }
    let mut scores = [0; CHUNK];
    // SAFETY: both are one vector.
    unsafe {
        let floor = _mm512_loadu_si512(floor.as_ptr().cast());
        let best = _mm512_max_epi8(floor, _mm512_sub_epi8(_mm512_setzero_si512(), least));
        _mm512_storeu_si512(scores.as_mut_ptr().cast(), best);
    }
    scores
}

/// See [`crate::Kernel::prefetch`].
pub(crate) fn prefetch_avx512(work: &SlabWork, row_chunk: RowChunk, values: &[i8]) {
    // SAFETY: every x86-64 processor has the instruction, and invalid addresses are ignored.
    let at = |address: *const i8| unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    let values = values.as_ptr();
    let chunk = row_chunk.chunk as usize;
    at(work.captures.as_ptr().wrapping_add(row_chunk.row as usize * work.captures_stride + chunk * CHUNK));
    for &to in work.rows[row_chunk.row as usize].iter().take_while(|&&to| to != PackedMove::NONE) {
        let Some(child) = &work.children[to.class()] else { continue };
        let Some(piece) = child.gather.pieces.get(child.gather.first[chunk] as usize) else { continue };
        let window = child.offset + to.rank() as usize * child.stride + piece.base as usize;
        at(values.wrapping_add(window));
        at(values.wrapping_add(window + CHUNK));
    }
    for lane in lanes(row_chunk.lanes) {
        let column = chunk * CHUNK + lane;
        at(values.wrapping_add(work.to.offset + column * work.to.stride + row_chunk.row as usize));
    }
}

/// See [`crate::Kernel::pick`].
pub(crate) fn pick_avx512(scores: &[i8; CHUNK], columns: u64) -> [u8; CHUNK] {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn pick(scores: &[i8; CHUNK], columns: u64) -> [u8; CHUNK] {
        // SAFETY: both are 64 bytes long.
        unsafe {
            let picked = _mm512_maskz_compress_epi8(columns, _mm512_loadu_epi8(scores.as_ptr()));
            std::mem::transmute::<__m512i, [u8; CHUNK]>(picked)
        }
    }
    // SAFETY: `has_avx512` was true, else this kernel is not chosen.
    unsafe { pick(scores, columns) }
}

/// See [`crate::Kernel::merge`], which asserts the bounds.
pub(crate) fn merge_avx512(to: &mut [i8], columns: u64, scores: &[u8]) -> u64 {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn merge(to: &mut [i8], columns: u64, scores: &[u8]) -> u64 {
        // SAFETY: unselected lanes are neither read nor written; the others are in bounds by the assertion.
        unsafe {
            let new = _mm512_maskz_expandloadu_epi8(columns, scores.as_ptr().cast());
            let old = _mm512_maskz_loadu_epi8(columns, to.as_ptr());
            let changed = _mm512_mask_cmpgt_epu8_mask(columns, _mm512_abs_epi8(new), _mm512_abs_epi8(old));
            _mm512_mask_storeu_epi8(to.as_mut_ptr(), changed, new);
            changed
        }
    }
    // SAFETY: `has_avx512` was true, else this kernel is not chosen.
    unsafe { merge(to, columns, scores) }
}

/// See [`crate::Kernel::reached`].
pub(crate) fn reached_avx512(gather: &Gather, chunk: usize, child: usize, columns: u64) -> u64 {
    // SAFETY: `has_avx512` was true, else this kernel is not chosen.
    unsafe { reached(gather, chunk, child, columns) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2,popcnt")]
fn reached(gather: &Gather, chunk: usize, child: usize, columns: u64) -> u64 {
    let mut all = 0;
    for piece in &gather.pieces[gather.first[chunk] as usize..gather.first[chunk + 1] as usize] {
        // A bit for each byte of the window: of 64, or of 128 where bytes are permuted.
        let from = (child * CHUNK) as isize - piece.base as isize;
        let shift = |columns: u64, by: isize| match by {
            0..64 => columns << by,
            -63..0 => columns >> -by,
            _ => 0,
        };
        let low = shift(columns, from);
        let lanes = if piece.lanes == GatherPiece::STRAIGHT {
            low
        } else {
            let high = shift(columns, from - CHUNK as isize);
            if low | high == 0 {
                continue;
            }
            let lanes = &gather.lanes[piece.lanes as usize];
            // SAFETY: lanes are aligned.
            let lanes = unsafe { _mm512_load_si512((&raw const *lanes).cast()) };
            let bytes = _mm512_permutex2var_epi8(_mm512_movm_epi8(low), lanes, _mm512_movm_epi8(high));
            _mm512_movepi8_mask(bytes)
        };
        all |= lanes & piece.mask;
    }
    all
}

/// Distance, in rows, of prefetches.
const AHEAD: usize = 4;

/// Prefetches the inputs of the wanted chunks of a row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2,popcnt")]
fn prefetch(task: &RowTask, row: usize) {
    let &RowTask { work, unit, values, ref moves, floor } = task;
    let values = values.as_ptr();
    let wanted = || lanes(unit.wanted[row].into());
    let floor = floor.scores.as_ptr().wrapping_add(row * floor.stride);
    wanted().for_each(|at| _mm_prefetch::<_MM_HINT_T0>(floor.wrapping_add(at * CHUNK)));
    for to in moves.of(&work.rows[unit.row + row]) {
        let child = work.children[to.class()].as_ref().expect("every class of a row has a child slab");
        let scores = values.wrapping_add(child.offset + to.rank() as usize * child.stride);
        for at in wanted() {
            if let Some(piece) = child.gather.pieces.get(child.gather.first[unit.chunk + at] as usize) {
                let window = scores.wrapping_add(piece.base as usize);
                _mm_prefetch::<_MM_HINT_T0>(window);
                _mm_prefetch::<_MM_HINT_T0>(window.wrapping_add(CHUNK));
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2,popcnt")]
unsafe fn recompute_rows(task: &RowTask, staged: &mut [i8]) {
    let &RowTask { work, unit, values, ref moves, floor } = task;
    let stride = unit.stride();
    let full = ((1u32 << unit.chunks) - 1) as u16;
    let values = values.as_ptr();
    let most = _mm512_set1_epi8(i8::MAX);
    for row in 0..unit.rows {
        let wanted = unit.wanted[row];
        if wanted == 0 {
            continue;
        }
        if row + AHEAD < unit.rows {
            prefetch(task, row + AHEAD);
        }
        // SAFETY: `staged` holds `unit.rows` rows of `stride` bytes.
        let least = unsafe { staged.as_mut_ptr().add(row * stride) };
        let mut first = true;
        for to in moves.of(&work.rows[unit.row + row]) {
            let child = work.children[to.class()].as_ref().expect("every class of a row has a child slab");
            // SAFETY: the row is one of the child slab's.
            let scores = unsafe { values.add(child.offset + to.rank() as usize * child.stride) };
            let gather = child.gather;
            let lower_chunk = |at: usize| {
                // SAFETY: see `recompute_avx512`; pieces and lanes are indexed by what `Gather` built.
                unsafe {
                    let to = least.add(at * CHUNK).cast::<__m512i>();
                    let mut acc = if first { most } else { _mm512_loadu_si512(to) };
                    let begin = *gather.first.get_unchecked(unit.chunk + at);
                    let end = *gather.first.get_unchecked(unit.chunk + at + 1);
                    for piece in begin..end {
                        let piece = gather.pieces.get_unchecked(piece as usize);
                        let window = scores.add(piece.base as usize).cast::<__m512i>();
                        let low = _mm512_loadu_si512(window);
                        let taken = if piece.lanes == GatherPiece::STRAIGHT {
                            low
                        } else {
                            let high = _mm512_loadu_si512(window.add(1));
                            let lanes = gather.lanes.get_unchecked(piece.lanes as usize);
                            _mm512_permutex2var_epi8(low, _mm512_load_si512((&raw const *lanes).cast()), high)
                        };
                        acc = _mm512_mask_min_epi8(acc, piece.mask, acc, taken);
                    }
                    _mm512_storeu_si512(to, acc);
                }
            };
            if wanted == full {
                (0..unit.chunks).for_each(lower_chunk);
            } else {
                lanes(wanted.into()).for_each(lower_chunk);
            }
            first = false;
        }
        let floor = &floor.scores[row * floor.stride..];
        for at in lanes(wanted.into()) {
            // SAFETY: see `recompute_avx512`.
            unsafe {
                let at = at * CHUNK;
                let to = least.add(at).cast::<__m512i>();
                let floor = _mm512_loadu_si512(floor.as_ptr().add(at).cast());
                let best = if first { most } else { _mm512_loadu_si512(to) };
                _mm512_storeu_si512(to, _mm512_max_epi8(floor, _mm512_sub_epi8(_mm512_setzero_si512(), best)));
            }
        }
    }
}

/// See [`crate::kernels::apply`].
///
/// # Safety
/// The bytes of `array` that `to` describes are inside one allocation, and no other thread accesses them at the same
/// time.
pub(crate) unsafe fn apply_avx512(
    from: StagedChunk,
    array: *mut i8,
    to: Destination,
    changed: &mut [u64; CHUNK],
) -> u64 {
    assert!(from.scores.len() >= (UNIT_ROWS - 1) * from.stride + CHUNK);
    assert!(to.columns <= CHUNK && to.rows <= UNIT_ROWS);
    // SAFETY: `has_avx512` was true, else this kernel is not chosen; the caller guarantees the rest.
    unsafe { apply_columns(from, array.add(to.offset), to, changed) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2,popcnt")]
unsafe fn apply_columns(from: StagedChunk, array: *mut i8, to: Destination, changed: &mut [u64; CHUNK]) -> u64 {
    let StagedChunk { scores, stride, wanted } = from;
    let all = if to.rows == UNIT_ROWS { u64::MAX } else { (1 << to.rows) - 1 };
    let mut changes = 0;
    for quarter in 0..to.columns.div_ceil(16) {
        // SAFETY: 64 staged rows of a chunk are readable, see `apply_avx512`.
        let columns = unsafe { transpose_quarter(scores.as_ptr().add(quarter * 16), stride) };
        for (lane, &new) in columns.iter().enumerate() {
            let column = quarter * 16 + lane;
            if column >= to.columns {
                break;
            }
            // SAFETY: the caller guarantees exclusive access to `to.rows` bytes of each column. Masked lanes are
            // neither read nor written.
            unsafe {
                let at = array.add(column * to.stride);
                let differs = if all == u64::MAX {
                    let old = _mm512_loadu_si512(at.cast());
                    let differs = _mm512_mask_cmpneq_epi8_mask(wanted, new, old);
                    if differs != 0 {
                        _mm512_storeu_si512(at.cast(), _mm512_mask_blend_epi8(wanted, old, new));
                    }
                    differs
                } else {
                    let old = _mm512_maskz_loadu_epi8(all, at);
                    let differs = _mm512_mask_cmpneq_epi8_mask(wanted & all, new, old);
                    if differs != 0 {
                        _mm512_mask_storeu_epi8(at, differs, new);
                    }
                    differs
                };
                changed[column] = differs;
                changes += u64::from(differs.count_ones());
            }
        }
    }
    changes
}

/// Sixteen columns of 64 staged rows, each column one vector.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn transpose_quarter(from: *const i8, stride: usize) -> [__m512i; 16] {
    // Vector i holds rows i, 16 + i, 32 + i and 48 + i; four rounds of unpacking transpose each 16 by 16 block.
    let mut a = [_mm512_setzero_si512(); 16];
    for (row, vector) in a.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let quarter = |block: usize| _mm_loadu_si128(from.add((block * 16 + row) * stride).cast());
            let mut four = _mm512_castsi128_si512(quarter(0));
            four = _mm512_inserti32x4::<1>(four, quarter(1));
            four = _mm512_inserti32x4::<2>(four, quarter(2));
            *vector = _mm512_inserti32x4::<3>(four, quarter(3));
        }
    }
    for _ in 0..4 {
        let mut b = a;
        for i in 0..8 {
            b[2 * i] = _mm512_unpacklo_epi8(a[i], a[i + 8]);
            b[2 * i + 1] = _mm512_unpackhi_epi8(a[i], a[i + 8]);
        }
        a = b;
    }
    a
}
