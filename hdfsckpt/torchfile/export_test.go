package torchfile

import (
	"archive/zip"
	"errors"
	"io"
)

// IsDamaged reports whether an error is of a file that was read and is not what
// torch.save writes, and not one of reading it.
func IsDamaged(err error) bool {
	return errors.Is(err, zip.ErrFormat) || errors.Is(err, errPickle) || errors.Is(err, errFile) || errors.Is(err, io.ErrUnexpectedEOF)
}
