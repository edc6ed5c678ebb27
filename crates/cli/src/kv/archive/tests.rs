use super::*;
use std::fs::File;
use std::io::{Read, Write};

const SOURCE: Record<'_> = Record::Source { target: "resp://h:1/0", run: "ab" };

fn string<'a>(key: &'a [u8], value: &'a [u8], expires: Option<u64>) -> Entry<'a> {
    let content = Content::String(Bytes(value));
    Entry { key: Bytes(key), expires, is_first: true, is_last: true, content }
}

/// Fields of a hash: whether they are its first part, and its last one.
fn fields<'a>(key: &'a [u8], (is_first, is_last): (bool, bool), names: &[&'a [u8]]) -> Entry<'a> {
    let fields = names.iter().map(|name| (Bytes(name), Bytes(b"of a field"))).collect();
    let content = Content::Hash(fields);
    Entry { key: Bytes(key), expires: Some(7), is_first, is_last, content }
}

fn members<'a>(key: &'a [u8], scores: &[(&'a [u8], f64)]) -> Entry<'a> {
    let members = scores.iter().map(|(member, score)| (Bytes(member), *score)).collect();
    let content = Content::SortedSet(members);
    Entry { key: Bytes(key), expires: None, is_first: true, is_last: true, content }
}

/// Returns the bytes of an archive of `entries`, with a footer if it is complete.
fn archive(entries: &[Entry<'_>], is_whole: bool) -> Vec<u8> {
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = Writer::begin(file.try_clone().unwrap(), &SOURCE).unwrap();
    for entry in entries {
        writer.entry(entry.clone()).unwrap();
        writer.cursor(5).unwrap();
    }
    if is_whole {
        writer.end().unwrap();
    }
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Returns the number of entries of an archive, if it has no error.
fn read(bytes: &[u8]) -> Result<(usize, Totals), ArchiveError> {
    let mut reader = Reader::open(file(bytes))?;
    let totals = reader.totals()?;
    let mut entries = 0;
    while let Some(records) = reader.next()? {
        entries += records.iter().filter_map(Record::entry).count();
    }
    Ok((entries, totals))
}

#[test]
fn an_archive_has_the_bytes_that_its_description_says() {
    let bytes = archive(&[string(b"k", b"vw", Some(300))], true);
    let mut expected = b"KVARCHIV\x01\0\0\0".to_vec();
    expected.extend(base::checksum::crc32c(&expected).to_le_bytes());
    let mut totals = Totals { strings: 1, expiring: 1, bytes: 2, ..Totals::default() };
    let hashed = |bytes: &[u8]| base::checksum::hash128(bytes);
    totals.checksum = hashed(b"\x00\x01\0\0\0k\0\0\0\0vw")
        .wrapping_add(hashed(b"\x03\x01\0\0\0k\0\0\0\0\x2c\x01\0\0\0\0\0\0"));
    // Varints of 7 bits a byte, as postcard has them.
    let mut sum = totals.checksum;
    let mut end = vec![3, 1, 0, 0, 0, 0, 1, 2];
    while sum >= 0x80 {
        end.push(sum.to_le_bytes()[0] | 0x80);
        sum >>= 7;
    }
    end.push(sum.to_le_bytes()[0]);
    let records =
        [&b"\x00\x0cresp://h:1/0\x02ab\x01\x01k\x01\xac\x02\x01\x01\x00\x02vw\x02\x05"[..], &end];
    let mut last_at = 0;
    for (number, records) in (0_u64..).zip(records) {
        last_at = expected.len() as u64;
        let sum = base::checksum::crc32c(&[&number.to_le_bytes()[..], records].concat());
        expected.extend(u32::try_from(records.len()).unwrap().to_le_bytes());
        expected.extend(sum.to_le_bytes());
        expected.extend(records);
    }
    let footer = [&b"KVARCEND"[..], &1_u64.to_le_bytes(), &last_at.to_le_bytes()].concat();
    expected.extend(&footer);
    expected.extend(base::checksum::crc32c(&footer).to_le_bytes());
    assert_eq!(bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(read(&bytes).unwrap(), (1, totals));
}

#[test]
fn whatever_bit_turns_over_or_byte_is_missing_is_found() {
    let entries = [
        string(b"k", b"value", None),
        fields(b"h", (true, true), &[b"f", b"g"]),
        members(b"z", &[(b"m", -0.5)]),
    ];
    let bytes = archive(&entries, true);
    assert_eq!(read(&bytes).unwrap().0, 3);
    for bit in 0..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let footer_at = bytes.len() - 28;
        match read(&bytes) {
            Err(ArchiveError::Foreign) if bit / 8 < 16 => {}
            Err(ArchiveError::Damaged { .. }) if (16..footer_at).contains(&(bit / 8)) => {}
            Err(ArchiveError::DamagedEnd { at }) if bit / 8 >= footer_at => {
                assert_eq!(at, footer_at as u64);
            }
            other => panic!("bit {bit}: {other:?}"),
        }
    }
    for len in 0..bytes.len() {
        match read(&bytes[..len]) {
            Err(ArchiveError::Foreign) if len < 16 => {}
            Err(ArchiveError::Unfinished) if len >= 16 => {}
            other => panic!("{len} bytes: {other:?}"),
        }
    }
    // Swapped blocks have wrong checksums.
    let entries = [b"a", b"b", b"c"].map(|key| string(key, b"1", None));
    let mut swapped = archive(&entries, true);
    let len_at = |at: usize| 8 + usize::from(swapped[at]);
    let second = 16 + len_at(16);
    let len = len_at(second);
    assert_eq!(len_at(second + len), len, "they fit each other's place");
    let (one, other) = swapped[second..].split_at_mut(len);
    one.swap_with_slice(&mut other[..len]);
    assert!(matches!(read(&swapped), Err(ArchiveError::Damaged { .. })));
}

#[test]
fn bytes_after_a_complete_archive_are_found() {
    let bytes = archive(&[string(b"k", b"value", None)], true);
    let other =
        archive(&[string(b"another", b"with more bytes", None), string(b"l", b"", None)], true);
    for more in [&b"0"[..], &bytes[bytes.len() - 28..], &bytes, &other] {
        match read(&[&bytes, more].concat()) {
            Err(ArchiveError::Longer { len }) => assert_eq!(len, bytes.len() as u64),
            result => panic!("{result:?}"),
        }
    }
    // The footer of another archive has another offset.
    let end = other.len() - 28;
    let mixed = [&bytes[..bytes.len() - 28], &other[end..]].concat();
    assert!(matches!(read(&mixed), Err(ArchiveError::DamagedEnd { .. })));
}

#[test]
fn a_newer_archive_is_named_as_one() {
    let mut bytes = archive(&[], true);
    bytes[8] = 2;
    let sum = base::checksum::crc32c(&bytes[..12]).to_le_bytes();
    bytes[12..16].copy_from_slice(&sum);
    assert!(matches!(read(&bytes), Err(ArchiveError::Newer(2))));
}

#[test]
fn a_length_that_cannot_be_takes_no_memory() {
    let mut bytes = archive(&[], false);
    bytes.truncate(16);
    bytes.extend((BLOCK_BYTES_MAX - 1).to_le_bytes());
    bytes.extend([0; 40]);
    let mut reader = Reader::open(file(&bytes)).unwrap();
    assert!(matches!(reader.next(), Err(ArchiveError::Unfinished)));
}

#[test]
fn totals_do_not_depend_on_order_or_parts() {
    let sum = |entries: &[Entry<'_>]| {
        let mut totals = Totals::default();
        for entry in entries {
            totals.add(entry);
        }
        totals
    };
    let (all, some) = ((true, true), [&b"a"[..], b"b", b"c"]);
    let whole = sum(&[fields(b"h", all, &some), string(b"k", b"v", Some(9))]);
    let parts = sum(&[
        string(b"k", b"v", Some(9)),
        fields(b"h", (true, false), &some[2..]),
        fields(b"h", (false, true), &some[..2]),
    ]);
    assert_eq!(whole, parts);
    assert_eq!((whole.keys(), whole.fields, whole.expiring, whole.bytes), (2, 3, 2, 34));
    let others = [
        sum(&[fields(b"h", all, &some), string(b"k", b"v", Some(8))]),
        sum(&[fields(b"h", all, &some), string(b"k", b"w", Some(9))]),
        sum(&[fields(b"h", all, &some), string(b"l", b"v", Some(9))]),
        sum(&[fields(b"h", all, &[b"a", b"b", b"d"]), string(b"k", b"v", Some(9))]),
        sum(&[fields(b"hk", all, &some), string(b"", b"v", Some(9))]),
        sum(&[members(b"z", &[(b"m", 1.0)])]),
        sum(&[members(b"z", &[(b"m", 2.0)])]),
    ];
    for (at, other) in others.iter().enumerate() {
        assert!(others[..at].iter().chain([&whole]).all(|one| one.checksum != other.checksum));
    }
    assert_eq!(sum(&[members(b"z", &[(b"m", 0.0)])]), sum(&[members(b"z", &[(b"m", -0.0)])]));
}
