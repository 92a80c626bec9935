package hdfsckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/url"
	"strings"
	"unicode/utf8"

	"holdfast/hdfsckpt/store"
)

// Entries below OwnDir that stand for a name in the store are called after it,
// escaped as in a URL. An escaped name of many bytes that are not ASCII is up to
// three times as long, so a long one is cut, and the name's digest stands for
// the rest of it; what is in the entry then says the name.
const (
	longestEntry = 200 // bytes; suffixes and temporary names have room beside it
	cutEntry     = 120
	digestMark   = "%~" // never a part of an escaped name
)

// entryName is what the entry for a name is called.
func entryName(name string) string {
	escaped := url.PathEscape(name)
	if len(escaped) <= longestEntry {
		return escaped
	}
	sum := sha256.Sum256([]byte(name))
	return escaped[:cutEntry] + digestMark + hex.EncodeToString(sum[:16])
}

// entryOf is the name that an entry is called after. It is not known (false) for
// one that was cut, and for what entryName has not made.
func entryOf(entry string) (name string, ok bool) {
	if strings.Contains(entry, digestMark) {
		return "", false
	}
	name, err := url.PathUnescape(entry)
	return name, err == nil && isEntryFor(entry, name)
}

// isEntryFor tells whether an entry stands for a name, and that is one that a
// program may give: what somebody else has put below OwnDir must lead nowhere.
func isEntryFor(entry, name string) bool {
	return fs.ValidPath(name) && utf8.ValidString(entry) && store.CheckName("look at", name) == nil &&
		name != store.OwnDir && !strings.HasPrefix(name, store.OwnDir+"/") && entryName(name) == entry
}
