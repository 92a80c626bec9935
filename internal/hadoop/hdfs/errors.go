package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"holdfast/internal/hadoop/rpc"
)

// errnos maps the Java exceptions of ClientProtocol.java, by their last name.
var errnos = map[string]syscall.Errno{
	"FileNotFoundException":               syscall.ENOENT,
	"AccessControlException":              syscall.EACCES,
	"FileAlreadyExistsException":          syscall.EEXIST,
	"PathIsNotEmptyDirectoryException":    syscall.ENOTEMPTY,
	"ParentNotDirectoryException":         syscall.ENOTDIR,
	"PathIsNotDirectoryException":         syscall.ENOTDIR,
	"AlreadyBeingCreatedException":        syscall.EBUSY,
	"RecoveryInProgressException":         syscall.EBUSY,
	"DSQuotaExceededException":            syscall.EDQUOT,
	"NSQuotaExceededException":            syscall.EDQUOT,
	"QuotaByStorageTypeExceededException": syscall.EDQUOT,
	"InvalidPathException":                syscall.EINVAL,
	"HadoopIllegalArgumentException":      syscall.EINVAL,
	"PathComponentTooLongException":       syscall.ENAMETOOLONG,
	"MaxDirectoryItemsExceededException":  syscall.ENOSPC,
	"LeaseExpiredException":               syscall.ESTALE,
	"UnsupportedOperationException":       syscall.ENOTSUP,
}

// texts identify exceptions whose class is too general (FSDirRenameOp.java,
// EncryptionZoneManager.checkMoveValidity, BlockManager.chooseTarget4NewBlock).
var texts = []struct {
	text  string
	errno syscall.Errno
}{
	{"rename destination directory is not empty", syscall.ENOTEMPTY},
	{"is a directory or file under source", syscall.EINVAL},
	{"can't be moved into an encryption zone", syscall.EXDEV},
	{"can't be moved from an encryption zone", syscall.EXDEV},
	{"can't be moved from encryption zone", syscall.EXDEV},
	{"no node(s) are excluded", syscall.ENOSPC},
}

// notDirectory is in the AccessControlException that a path through a file
// gives to all but the superuser (FSPermissionChecker.java).
const notDirectory = "(is not a directory)"

// Errno returns the errno that fits an error of this package or of package write;
// 0 for nil. It is never EINTR, since many programs repeat the call then.
func Errno(err error) syscall.Errno {
	var (
		errno syscall.Errno
		known *failure
		conn  *net.OpError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &known):
		return known.errno
	case errors.As(err, &conn), rpc.Unreachable(err): // their errno is of no use to one who reads a file
		return syscall.EIO
	case errors.As(err, &errno):
		return errno
	}
	class := rpc.RemoteClass(err)
	if strings.HasSuffix(class, ".AccessControlException") && strings.Contains(err.Error(), notDirectory) {
		return syscall.ENOTDIR
	}
	if errno, ok := errnos[class[strings.LastIndexAny(class, ".$")+1:]]; ok {
		return errno
	}
	for _, t := range texts {
		if class != "" && strings.Contains(err.Error(), t.text) {
			return t.errno
		}
	}
	if rpc.IsDenied(err) {
		return syscall.EACCES
	}
	return syscall.EIO
}

// Wrap adds the operation, its object and the errno to an error.
func Wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if e := new(fs.PathError); errors.As(err, &e) && e.Op == op && e.Path == path {
		return err
	}
	return &fs.PathError{Op: op, Path: path, Err: &failure{err, Errno(err)}}
}

// failure adds an errno to an error; it hides an errno of the connection inside.
type failure struct {
	err   error
	errno syscall.Errno
}

func (f *failure) Error() string {
	if e, ok := f.err.(syscall.Errno); ok && e == f.errno {
		return e.Error()
	}
	return fmt.Sprintf("%v (%v)", f.err, f.errno)
}

// Unwrap has the errno first, which errors.As then finds.
func (f *failure) Unwrap() []error { return []error{f.errno, f.err} }
