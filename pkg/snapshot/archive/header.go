package archive

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The parts of a ustar header, by POSIX.1-2001 (pax, "ustar Interchange Format").
const (
	blockSize = 512
	nameSize  = 100
	maxOctal  = 8<<30 - 1 // what 11 octal digits hold
	made      = 315532800 // 1980-01-01: the time of all files, for it says nothing and every program takes it

	typeAt = 156

	regular  = '0'
	extended = 'x'
)

// header gives the blocks that stand before the content of a file, which name and size say all of.
func header(name string, size int64) []byte {
	records := ""
	if !fitsName(name) {
		records += record("path", name)
		name = "long-name"
	}
	if size > maxOctal {
		records += record("size", strconv.FormatInt(size, 10))
		size = 0
	}
	if records == "" {
		return ustar(name, size, regular)
	}
	out := ustar("pax-header", int64(len(records)), extended)
	out = append(out, records...)
	out = append(out, make([]byte, padding(int64(len(records))))...)
	return append(out, ustar(name, size, regular)...)
}

func fitsName(name string) bool {
	return len(name) <= nameSize && !strings.ContainsFunc(name, func(r rune) bool { return r > '~' })
}

// record is one record of a PAX header. Its length counts its own digits.
func record(key, value string) string {
	rest := fmt.Sprintf(" %s=%s\n", key, value)
	n := len(rest)
	for n != len(strconv.Itoa(n))+len(rest) {
		n = len(strconv.Itoa(n)) + len(rest)
	}
	return strconv.Itoa(n) + rest
}

func ustar(name string, size int64, kind byte) []byte {
	b := make([]byte, blockSize)
	copy(b, name)
	for at, field := range map[int]string{
		100: "0000600\x00", 108: "0000000\x00", 116: "0000000\x00", // mode, user, group
		124: fmt.Sprintf("%011o\x00", size), 136: fmt.Sprintf("%011o\x00", made),
		148: "        ", typeAt: string(rune(kind)), // the checksum counts as spaces
		257: "ustar\x0000", 329: "0000000\x00", 337: "0000000\x00", // magic and version, device numbers
	} {
		copy(b[at:], field)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", checksum(b)))
	return b
}

func checksum(b []byte) (sum int) {
	for i, c := range b {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int(c)
	}
	return sum
}

// padding is how many zeros fill the last block of so many bytes.
func padding(size int64) int64 { return -size & (blockSize - 1) }

// sizeIn reads the size of a header that gives it as ours do.
func sizeIn(block []byte) (int64, bool) {
	digits, ended := bytes.CutSuffix(block[124:136], []byte{0})
	size, err := strconv.ParseUint(string(digits), 8, 63)
	return int64(size), ended && err == nil
}

// isHeader says that a block is the header of a tar, whatever it says.
func isHeader(block []byte) bool {
	sum, err := strconv.ParseUint(strings.Trim(text(block[148:156]), " "), 8, 32)
	return err == nil && int(sum) == checksum(block)
}

// foreign says what is in a header that is none of ours, for a message.
func foreign(block []byte) (name, problem string) {
	name = text(block[:nameSize])
	if prefix := text(block[345:500]); prefix != "" {
		name = prefix + "/" + name
	}
	if !isHeader(block) {
		return name, "has a damaged header"
	}
	switch kind := block[typeAt]; kind {
	case regular, 0:
		return name, badName(name)
	case '1':
		return name, "is a hard link"
	case '2':
		return name, "is a symbolic link"
	case '3', '4':
		return name, "is a device"
	case '5':
		return name, "is a folder, which backups don't have by themselves"
	case '6':
		return name, "is a named pipe"
	case extended:
		return name, "is a PAX header that says other than a name and a size that need one"
	case 'g':
		return name, "is a global PAX header"
	case 'K', 'L':
		return name, "is a long name in GNU's form"
	case 'S':
		return name, "is a sparse file in GNU's form"
	default:
		return name, "is of an unknown type, " + strconv.QuoteToASCII(string(rune(kind)))
	}
}

// text reads a field up to its first NUL.
func text(field []byte) string {
	field, _, _ = bytes.Cut(field, []byte{0})
	return string(field)
}
