// Package archive writes a backup as one tar.zst stream of a snapshot's files, and reads such a stream into an empty folder.
//
// The stream is made so that everything in it is known before it comes, and reading is comparing:
//
//   - The first file is manifest.json. It announces every other file by name, size and SHA-256, in the order in which they
//     follow. So the head of a stream tells counts and bytes (Open), and a file that is not announced, comes twice, is missing
//     or is another one is refused where it stands.
//   - A file's header is made from its name and size alone: a regular file of mode 0600, of user and group 0, of 1980. It is
//     one ustar block. Where the name is longer than 100 bytes or not ASCII, or the size is 8 GiB or more, a PAX header with
//     the records path and size, those of them that are needed, stands before it. A reader makes the same bytes and takes no
//     others: links, devices, folders, sparse files, other PAX records and GNU's long names have no way in, and there is no
//     parser of them to be fooled.
//   - Two blocks of zeros end it, and nothing is behind them.
//   - The tar is cut into chunks of 1 MiB, each a zstd frame that gives its size, with a checksum. A frame needs no memory of
//     those before it, so both sides hold one of them, however large the backup is. No frame is empty, skippable or with a
//     dictionary.
//   - No part of a stream may hold more than 100 times its own bytes (after the first 16 MiB). Where files compress better
//     than half of that, the writer stores some chunks as they are: a backup that it makes is never taken for a bomb.
//
// `tar --zstd -x` unpacks it into what a snapshot's folder is. What tar makes of that again is not a backup any more.
//
// Names are UTF-8 without control characters and backslashes, relative, without the parts "." and "..", of up to 255 bytes a
// part, 1024 in all and 32 parts. Two files may have names that differ in case or normalization alone, as they may in what was
// backed up; where a file system takes them for one, the second is refused rather than written over the first.
//
// The same Limits hold for the writer, who refuses to make what a reader would refuse. What a refusal leaves in the folder is
// removed; after a crash, whoever gave the folder removes it. The manifest is written last, when all else is durable.
//
// Start reading at Write and at Open. What does not live here: what a manifest says beside its files, and what becomes of
// them (pkg/snapshot).
package archive
