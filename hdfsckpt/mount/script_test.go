package mount_test

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A script is a sequence of system calls as text, one a line, so that it can be
// run on any file system, compared, shortened and read:
//
//	open h f rw,creat 644     h names the descriptor
//	pwrite h 10 text          → 4
//	rename f d/g              → ok
//	stat d/g                  → file 644 14 1
//
// Names are relative to a directory; @255 is a name of so many letters, and @xff one of that
// byte. Each line gives one answer: "ok", what was read, or the errno's name.

// run carries a script out in a directory, which is left as it was entered.
func run(dir string, lines []string) ([]string, error) {
	if err := unix.Chdir(dir); err != nil {
		return nil, fmt.Errorf("entering %s: %w", dir, err)
	}
	unix.Umask(0o022)
	r := &runner{fds: make(map[string]int)}
	answers := make([]string, 0, len(lines))
	for _, line := range lines {
		said, err := r.step(strings.Fields(line))
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			said = unix.ErrnoName(errno)
		} else if err != nil {
			return answers, fmt.Errorf("%s: %w", line, err)
		}
		answers = append(answers, said)
	}
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	return answers, unix.Chdir("/")
}

// expand writes out the short forms of a name.
func expand(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if n, err := strconv.Atoi(strings.TrimPrefix(p, "@")); err == nil && p[0] == '@' {
			parts[i] = strings.Repeat("n", n)
		}
		if digits, ok := strings.CutPrefix(p, "@x"); ok {
			if b, err := hex.DecodeString(digits); err == nil {
				parts[i] = string(b)
			}
		}
	}
	return strings.Join(parts, "/")
}

var openFlags = map[string]int{
	"r": unix.O_RDONLY, "w": unix.O_WRONLY, "rw": unix.O_RDWR,
	"creat": unix.O_CREAT, "excl": unix.O_EXCL, "trunc": unix.O_TRUNC, "append": unix.O_APPEND,
	"directory": unix.O_DIRECTORY, "nofollow": unix.O_NOFOLLOW, "tmpfile": unix.O_TMPFILE,
	"path": unix.O_PATH, "sync": unix.O_SYNC, "direct": unix.O_DIRECT,
}

func flagsOf(words string) (flags int) {
	for _, w := range strings.Split(words, ",") {
		f, ok := openFlags[w]
		if !ok {
			panic("no such flag: " + w)
		}
		flags |= f
	}
	return flags
}

// runner is a script that is being carried out.
type runner struct{ fds map[string]int }

func (r *runner) fd(name string) int {
	if fd, ok := r.fds[name]; ok {
		return fd
	}
	return -1 // EBADF
}

// steps say what each word does with its arguments.
var steps map[string]func(r *runner, a []string) (string, error)

func (r *runner) step(words []string) (string, error) {
	do := steps[words[0]]
	if do == nil {
		return "", fmt.Errorf("no such call in a script: %s", words[0])
	}
	said, err := do(r, append(words[1:], "", "", "", ""))
	if said == "" {
		said = "ok"
	}
	return said, err
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func octal(s string) uint32 {
	if s == "" {
		return 0o644
	}
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

// text is what "TEXT" or "TEXT*N" means: N repetitions.
func text(s string) []byte {
	if t, n, ok := strings.Cut(s, "*"); ok {
		return []byte(strings.Repeat(t, int(number(n))))
	}
	return []byte(s)
}

// shown is content in an answer: in full if it is short.
func shown(b []byte) string {
	const most = 64
	if len(b) <= most {
		return strconv.Quote(string(b))
	}
	sum := uint32(0)
	for _, c := range b {
		sum = sum*31 + uint32(c)
	}
	return fmt.Sprintf("%d bytes, %08x", len(b), sum)
}

func count(n int, err error) (string, error) { return strconv.Itoa(n), err }

// kinds of files.
var kinds = map[uint32]string{
	unix.S_IFREG: "file", unix.S_IFDIR: "dir", unix.S_IFLNK: "link", unix.S_IFIFO: "fifo",
}

func described(st *unix.Stat_t, err error) (string, error) {
	if err != nil {
		return "", err
	}
	kind := kinds[st.Mode&unix.S_IFMT]
	if kind != "file" { // sizes and links of directories are each file system's own
		return fmt.Sprintf("%s %o", kind, st.Mode&0o7777), nil
	}
	return fmt.Sprintf("%s %o %d %d", kind, st.Mode&0o7777, st.Size, st.Nlink), nil
}

func timeOf(word string) unix.Timespec {
	switch word {
	case "omit":
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	case "now":
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	}
	return unix.Timespec{Sec: number(word)}
}

// lately tells a time in an answer: as it was set, or as "now".
func lately(t unix.Timespec) string {
	if d := time.Since(time.Unix(t.Sec, t.Nsec)); d > -time.Minute && d < time.Hour {
		return "now"
	}
	return strconv.FormatInt(t.Sec, 10)
}

func readFully(read func([]byte, int64) (int, error), off, size int64) (string, error) {
	b := make([]byte, size)
	n := 0
	for n < len(b) {
		k, err := read(b[n:], off+int64(n))
		if err != nil {
			return "", err
		}
		if k == 0 {
			break
		}
		n += k
	}
	return shown(b[:n]), nil
}

// inParallel does something for each number below n, a few at a time.
func inParallel(n int, do func(i int) error) error {
	const workers = 8
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = do(i)
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

func init() {
	steps = map[string]func(*runner, []string) (string, error){
		"open": func(r *runner, a []string) (string, error) {
			fd, err := unix.Open(expand(a[1]), flagsOf(a[2])|unix.O_CLOEXEC, octal(a[3]))
			if err != nil {
				return "", err
			}
			if old, ok := r.fds[a[0]]; ok {
				unix.Close(old)
			}
			r.fds[a[0]] = fd
			return "", nil
		},
		"close": func(r *runner, a []string) (string, error) {
			fd := r.fd(a[0])
			delete(r.fds, a[0])
			return "", unix.Close(fd)
		},
		"dup": func(r *runner, a []string) (string, error) {
			fd, err := unix.FcntlInt(uintptr(r.fd(a[0])), unix.F_DUPFD_CLOEXEC, 3)
			if err == nil {
				if old, ok := r.fds[a[1]]; ok {
					unix.Close(old)
				}
				r.fds[a[1]] = fd
			}
			return "", err
		},
		// put is open, write and close, as one.
		"put": func(_ *runner, a []string) (string, error) {
			fd, err := unix.Open(expand(a[0]), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, octal(a[2]))
			if err != nil {
				return "", err
			}
			if _, err := unix.Write(fd, text(a[1])); err != nil {
				unix.Close(fd)
				return "", err
			}
			return "", unix.Close(fd)
		},
		"get": func(_ *runner, a []string) (string, error) {
			fd, err := unix.Open(expand(a[0]), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(fd)
			return readFully(func(b []byte, _ int64) (int, error) { return unix.Read(fd, b) }, 0, 4<<20)
		},
		"write": func(r *runner, a []string) (string, error) { return count(unix.Write(r.fd(a[0]), text(a[1]))) },
		"pwrite": func(r *runner, a []string) (string, error) {
			return count(unix.Pwrite(r.fd(a[0]), text(a[2]), number(a[1])))
		},
		"read": func(r *runner, a []string) (string, error) {
			return readFully(func(b []byte, _ int64) (int, error) { return unix.Read(r.fd(a[0]), b) }, 0, number(a[1]))
		},
		"pread": func(r *runner, a []string) (string, error) {
			return readFully(func(b []byte, off int64) (int, error) { return unix.Pread(r.fd(a[0]), b, off) }, number(a[1]), number(a[2]))
		},
		"seek": func(r *runner, a []string) (string, error) {
			whence := map[string]int{"set": unix.SEEK_SET, "cur": unix.SEEK_CUR, "end": unix.SEEK_END, "data": unix.SEEK_DATA, "hole": unix.SEEK_HOLE}
			var st unix.Stat_t
			if err := unix.Fstat(r.fd(a[0]), &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				return "a directory", nil // each file system's own
			}
			n, err := unix.Seek(r.fd(a[0]), number(a[1]), whence[a[2]])
			return strconv.FormatInt(n, 10), err
		},
		"truncate":  func(_ *runner, a []string) (string, error) { return "", unix.Truncate(expand(a[0]), number(a[1])) },
		"ftruncate": func(r *runner, a []string) (string, error) { return "", unix.Ftruncate(r.fd(a[0]), number(a[1])) },
		"fallocate": func(r *runner, a []string) (string, error) {
			return "", unix.Fallocate(r.fd(a[0]), 0, number(a[1]), number(a[2]))
		},
		"copyrange": func(r *runner, a []string) (string, error) {
			return count(unix.CopyFileRange(r.fd(a[0]), nil, r.fd(a[1]), nil, int(number(a[2])), 0))
		},
		"fsync":     func(r *runner, a []string) (string, error) { return "", unix.Fsync(r.fd(a[0])) },
		"fdatasync": func(r *runner, a []string) (string, error) { return "", unix.Fdatasync(r.fd(a[0])) },
		"mmap": func(r *runner, a []string) (string, error) {
			var st unix.Stat_t
			if err := unix.Fstat(r.fd(a[0]), &st); err != nil {
				return "", err
			}
			// Pages past the end are a SIGBUS.
			const page = 4096
			size := number(a[1])
			if st.Mode&unix.S_IFMT == unix.S_IFREG {
				size = min(size, (st.Size+page-1)/page*page)
			}
			if size == 0 {
				return "", nil
			}
			b, err := readMapped(r.fd(a[0]), int(size))
			return shown(b), err
		},
		"mmapwrite": func(r *runner, a []string) (string, error) { // h offset text
			data := text(a[2])
			off := number(a[1])
			return "", writeMapped(call{Fd: r.fd(a[0]), Off: off, Size: off + int64(len(data)), Data: data})
		},
		"stat": func(_ *runner, a []string) (string, error) {
			var st unix.Stat_t
			return described(&st, unix.Lstat(expand(a[0]), &st))
		},
		"fstat": func(r *runner, a []string) (string, error) {
			var st unix.Stat_t
			return described(&st, unix.Fstat(r.fd(a[0]), &st))
		},
		"samefile": func(r *runner, a []string) (string, error) { // is handle a[0] what has the name?
			var st1, st2 unix.Stat_t
			if err := unix.Fstat(r.fd(a[0]), &st1); err != nil {
				return "", err
			}
			err := unix.Lstat(expand(a[1]), &st2)
			return strconv.FormatBool(st1.Ino == st2.Ino), err
		},
		"times": func(_ *runner, a []string) (string, error) {
			var st unix.Stat_t
			err := unix.Lstat(expand(a[0]), &st)
			return lately(st.Atim) + " " + lately(st.Mtim), err
		},
		"mtime": func(_ *runner, a []string) (string, error) {
			var st unix.Stat_t
			err := unix.Lstat(expand(a[0]), &st)
			return lately(st.Mtim), err
		},
		"utimes": func(_ *runner, a []string) (string, error) {
			ts := []unix.Timespec{timeOf(a[1]), timeOf(a[2])}
			return "", unix.UtimesNanoAt(unix.AT_FDCWD, expand(a[0]), ts, unix.AT_SYMLINK_NOFOLLOW)
		},
		"list": func(_ *runner, a []string) (string, error) {
			names, err := listDir(expand(a[0]))
			return strings.Join(names, " ") + ";", err
		},
		"mkdir": func(_ *runner, a []string) (string, error) {
			return "", unix.Mkdir(expand(a[0]), octal(cmp.Or(a[1], "755")))
		},
		"rmdir":  func(_ *runner, a []string) (string, error) { return "", unix.Rmdir(expand(a[0])) },
		"unlink": func(_ *runner, a []string) (string, error) { return "", unix.Unlink(expand(a[0])) },
		"rename": func(_ *runner, a []string) (string, error) {
			flags := map[string]uint{"": 0, "noreplace": unix.RENAME_NOREPLACE, "exchange": unix.RENAME_EXCHANGE}[a[2]]
			return "", unix.Renameat2(unix.AT_FDCWD, expand(a[0]), unix.AT_FDCWD, expand(a[1]), flags)
		},
		"link":    func(_ *runner, a []string) (string, error) { return "", unix.Link(expand(a[0]), expand(a[1])) },
		"symlink": func(_ *runner, a []string) (string, error) { return "", unix.Symlink(a[0], expand(a[1])) },
		"readlink": func(_ *runner, a []string) (string, error) {
			b := make([]byte, 4096)
			n, err := unix.Readlink(expand(a[0]), b)
			return string(b[:max(n, 0)]), err
		},
		"mkfifo": func(_ *runner, a []string) (string, error) { return "", unix.Mkfifo(expand(a[0]), octal(a[1])) },
		"mknod": func(_ *runner, a []string) (string, error) {
			return "", unix.Mknod(expand(a[0]), unix.S_IFREG|octal(a[1]), 0)
		},
		"chmod":  func(_ *runner, a []string) (string, error) { return "", unix.Chmod(expand(a[0]), octal(a[1])) },
		"fchmod": func(r *runner, a []string) (string, error) { return "", unix.Fchmod(r.fd(a[0]), octal(a[1])) },
		"umask": func(_ *runner, a []string) (string, error) {
			unix.Umask(int(octal(a[0])))
			return "", nil
		},
		// chown to oneself, or to root.
		"chown": func(_ *runner, a []string) (string, error) {
			id := os.Getuid()
			if a[1] == "other" {
				id = 1 // in a user namespace of one user, nobody at all
			}
			return "", unix.Lchown(expand(a[0]), id, -1)
		},
		"access": func(_ *runner, a []string) (string, error) {
			var mode uint32
			for _, c := range a[1] {
				mode |= map[rune]uint32{'r': unix.R_OK, 'w': unix.W_OK, 'x': unix.X_OK, 'f': unix.F_OK}[c]
			}
			return "", unix.Access(expand(a[0]), mode)
		},
		"chdir": func(_ *runner, a []string) (string, error) { return "", unix.Chdir(expand(a[0])) },
		"cwd": func(*runner, []string) (string, error) { // the last part of it
			b := make([]byte, 4096)
			n, err := unix.Getcwd(b)
			if err != nil {
				return "", err
			}
			dir := string(b[:n-1])
			return dir[strings.LastIndexByte(dir, '/')+1:], nil
		},
		"flock": func(r *runner, a []string) (string, error) {
			how := map[string]int{"ex": unix.LOCK_EX, "sh": unix.LOCK_SH, "un": unix.LOCK_UN}[a[1]]
			return "", unix.Flock(r.fd(a[0]), how|unix.LOCK_NB)
		},
		"lock": func(r *runner, a []string) (string, error) { // of the open file description
			how := map[string]int16{"ex": unix.F_WRLCK, "sh": unix.F_RDLCK, "un": unix.F_UNLCK}[a[1]]
			return "", unix.FcntlFlock(uintptr(r.fd(a[0])), unix.F_OFD_SETLK, &unix.Flock_t{Type: how})
		},
		"setxattr": func(_ *runner, a []string) (string, error) {
			return "", unix.Setxattr(expand(a[0]), a[1], []byte(a[2]), 0)
		},
		"getxattr": func(_ *runner, a []string) (string, error) {
			b := make([]byte, 100)
			n, err := unix.Getxattr(expand(a[0]), a[1], b)
			return shown(b[:max(n, 0)]), err
		},
		"listxattr": func(_ *runner, a []string) (string, error) {
			b := make([]byte, 1000)
			n, err := unix.Listxattr(expand(a[0]), b)
			return shown(b[:max(n, 0)]), err
		},
		// many makes N files in a directory.
		"many": func(_ *runner, a []string) (string, error) {
			n := int(number(a[1]))
			return "", inParallel(n, func(i int) error {
				fd, err := unix.Open(fmt.Sprintf("%s/%05d", a[0], i), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
				if err != nil {
					return err
				}
				return unix.Close(fd)
			})
		},
		"howmany": func(_ *runner, a []string) (string, error) {
			names, err := listDir(a[0])
			return count(len(slices.Compact(names)), err)
		},
		// sweep reads a directory a little at a time and removes each file as
		// it comes, as rm -r and TensorFlow's deletion of old checkpoints do.
		"sweep": func(_ *runner, a []string) (string, error) {
			d, err := os.Open(a[0])
			if err != nil {
				return "", err
			}
			defer d.Close()
			n := 0
			for {
				names, err := d.Readdirnames(500)
				if len(names) == 0 {
					return count(n, nil)
				}
				if err == nil {
					err = inParallel(len(names), func(i int) error { return unix.Unlink(a[0] + "/" + names[i]) })
				}
				if err != nil {
					return "", err
				}
				n += len(names)
			}
		},
	}
}
