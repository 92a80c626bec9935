package mount_test

// cases are what POSIX, or Linux where POSIX is silent, says of a file system:
// the subjects of pjdfstest, and what training frameworks do besides. The
// host's tmpfs gives the right answers; docs/filesystem.md lists where a mount
// differs. See script_test.go for the language.
var cases = []struct{ name, script string }{
	{"open: creating", `
		open h f w,creat,excl 640
		stat f
		write h hello
		stat f
		close h
		get f
		open h f w,creat,excl 640
		open h f rw,creat 600
		read h 10
		stat f
		umask 077
		put g x 666
		stat g
		open h none r
		open h none/f w,creat
		open h f/g w,creat
		open h f/g r`},
	{"open: kinds of files", `
		mkdir d
		put f x
		open h d r
		open h d w
		open h d rw,creat
		open h d w,creat,excl
		open h d r,directory
		open h f r,directory
		open h f r,nofollow
		open h . r
		open h . w
		open h d/. w,creat
		open h d/.. r,directory
		open h f/ r
		open h new/ w,creat
		open h f/. r`},
	{"open: what a descriptor may do", `
		put f hello
		open r f r
		open w f w
		write r x
		read w 1
		pread w 0 1
		ftruncate r 1
		ftruncate w 3
		read r 10
		mmap w 3
		mmapwrite r 0 x
		close r
		read r 1
		write none x
		close none`},
	{"open: O_TRUNC", `
		put f hello
		open h f w,trunc
		stat f
		write h bye
		close h
		get f
		open h f rw,creat,trunc 600
		stat f
		close h
		stat f`},
	{"open: O_TMPFILE", `
		put f x
		open h f r,excl
		read h 1
		open t . rw,tmpfile`},
	{"open: O_PATH", `
		put f x
		open h f path
		fstat h
		read h 1`},
	{"open: O_SYNC and O_DIRECT", `
		open h f rw,creat,sync
		write h hello
		pread h 0 10
		close h
		get f`},
	{"open: permissions", `
		put f x 444
		open h f w
		open h f rw,append
		open h f r,trunc
		truncate f 0
		open h f r
		read h 2
		chmod f 200
		open w f w
		open h f r
		get f
		chmod f 000
		open h f r
		open h f w
		stat f`},
	{"open: a directory's permissions", `
		mkdir d
		put d/f x
		chmod d 555
		open h d/new w,creat
		mkdir d/new
		unlink d/f
		rename d/f d/g
		rename d/f f
		list d
		chmod d 600
		stat d/f
		get d/f
		chdir d
		chmod d 300
		list d
		get d/f
		chmod d 700
		list d
		get d/f`},
	{"open: O_TRUNC in a directory that may not be written", `
		mkdir d
		put d/f x
		chmod d 555
		put d/f changed`},
	{"open: a mode that forbids its own descriptor", `
		open h f rw,creat 000
		write h hello
		pread h 0 5
		close h
		stat f`},

	{"names: length", `
		put @255 x
		get @255
		stat @255
		rename @255 short
		rename short @255
		put @256 x
		mkdir @256
		stat @256
		unlink @256
		rmdir @256
		rename @256 f
		rename @255 @256
		truncate @256 1
		chmod @256 600
		utimes @256 1 1
		access @256 f
		open h @256/f r
		mkdir @254
		put @254/@255 deep
		get @254/@255
		list @254
		unlink @254/@255
		rmdir @254
		unlink @255
		list .`},
	{"names: paths that are too long", `
		put @250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250 x
		stat @250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250/@250`},
	{"names: any letters", `
		put naïve-模型-🚀 x
		mkdir ディレクトリ
		rename naïve-模型-🚀 ディレクトリ/é
		list ディレクトリ
		get ディレクトリ/é
		put ディレクトリ/é y
		list ディレクトリ
		put a\b*2 z
		put a,b;c?d&e=f%20 z
		put ... z
		put -rf z
		put "'$(x)` + "`" + ` z
		list .`},
	{"names: a colon", `
		put a:b x`},
	{"names: not UTF-8", `
		put @xff x
		mkdir @xfe
		put a x
		rename a @xfd`},
	{"names: dots", `
		mkdir d
		stat d/.
		stat d/..
		mkdir d/.
		mkdir d/..
		rmdir d/.
		rmdir d/..
		unlink d/.
		unlink d/..
		rename d/. e
		rename d d/.
		rename d/.. e
		open h d/. w,creat
		list d/..`},

	{"mkdir", `
		mkdir d 750
		stat d
		mkdir d
		put f x
		mkdir f
		mkdir none/d
		mkdir f/d
		mkdir d/e/
		list d
		umask 027
		mkdir masked 777
		stat masked
		mkdir sticky 1777
		stat sticky
		list .`},
	{"rmdir", `
		mkdir d
		mkdir d/e
		rmdir d
		rmdir d/e/
		rmdir d
		rmdir d
		put f x
		rmdir f
		rmdir f/g
		mkdir d
		put d/f x
		rmdir d
		unlink d/f
		rmdir d
		list .`},
	{"rmdir: while open, and as the current directory", `
		mkdir d
		open h d r,directory
		chdir d
		rmdir ../d
		fstat h
		list .
		put f x
		mkdir e
		stat .
		stat ..
		rename f g
		cwd
		open i . r
		fsync h`},
	{"rmdir: of a directory in which a file is open", `
		mkdir d
		open h d/f rw,creat
		write h hello
		rmdir d
		unlink d/f
		rmdir d
		pread h 0 10
		write h more
		pread h 0 10
		fstat h
		mkdir d
		list d
		close h
		list d`},

	{"unlink", `
		put f x
		unlink f
		unlink f
		mkdir d
		unlink d
		unlink none/f
		put f x
		unlink f/g
		unlink f/
		list .`},
	{"unlink: while open", `
		put f hello
		open r f r
		open w f rw
		unlink f
		stat f
		list .
		read r 10
		fstat r
		pwrite w 5 -more
		pread w 0 20
		pread r 0 20
		put f another
		get f
		pread r 0 20
		ftruncate w 3
		fstat w
		fchmod w 600
		close w
		pread r 0 20
		close r
		get f
		list .`},
	{"unlink: before the first close", `
		open h f rw,creat
		write h hello
		unlink f
		fstat h
		pread h 0 10
		write h -more
		fsync h
		put f another
		pread h 0 20
		close h
		get f`},

	{"rename: files", `
		put a A
		rename a b
		stat a
		get b
		put c C
		rename c b
		get b
		list .
		rename b b
		get b
		rename none x
		rename b none/x
		rename b b/x
		rename none/a b
		rename b/x b
		rename b c/
		list .`},
	{"rename: files and directories", `
		put f F
		mkdir d
		mkdir e
		put e/g G
		rename f d
		rename d f
		rename f e
		rename e d
		list d
		mkdir e
		rename e d
		rename d e
		list e
		rename e e/x
		rename e e/x/y
		rename e/g e
		rename f e/g
		get e/g
		rename e/ h/
		list h
		rename h/g h/
		list .`},
	{"rename: deep trees", `
		mkdir a
		mkdir a/b
		mkdir a/b/c
		put a/b/c/f deep
		mkdir x
		rename a/b x/b
		get x/b/c/f
		stat a/b
		rename a/b/c x/c
		rename x/b/c a/c
		get a/c/f
		rename x/b a/b
		rename a a2
		get a2/c/f
		list a2
		rename a2/c .
		rename a2 a2/b/d
		list x`},
	{"rename: flags", `
		put a A
		put b B
		rename a b noreplace
		rename a c noreplace
		get c
		rename none c noreplace
		mkdir d
		rename c d noreplace
		list .`},
	{"rename: RENAME_EXCHANGE", `
		put a A
		put b B
		rename a b exchange`},
	{"rename: over an open file", `
		put a old
		put b new
		open h a r
		open w a rw
		rename b a
		get a
		pread h 0 10
		fstat h
		pwrite w 0 changed
		pread h 0 10
		close w
		get a
		pread h 0 10
		close h
		list .`},
	{"rename: while it is written", `
		open h t w,creat
		write h one-
		rename t f
		write h two
		get f
		stat t
		close h
		get f
		open h f rw
		pwrite h 0 ONE
		rename f g
		put f other
		pwrite h 3 =
		close h
		get g
		get f
		list .`},
	{"rename: over a file that is written", `
		open h t rw,creat
		write h written
		put f other
		rename f t
		get t
		pread h 0 10
		write h -on
		close h
		get t
		list .`},
	{"rename: of a directory in which files are open", `
		mkdir d
		put d/old old
		open r d/old r
		open w d/new rw,creat
		write w new
		rename d e
		pread r 0 10
		write w er
		list e
		get e/new
		close w
		get e/new
		samefile r e/old
		rename e/old e/older
		pread r 0 10
		list e`},
	{"rename: the current directory", `
		mkdir d
		chdir d
		put f x
		rename ../d ../e
		cwd
		put g x
		list .
		list ../e`},
	{"rename: a temporary directory into place", `
		mkdir step.tmp
		mkdir step.tmp/state
		put step.tmp/state/a A
		put step.tmp/meta M
		open h step.tmp r,directory
		fsync h
		rename step.tmp step
		list step
		get step/state/a
		mkdir step.tmp
		put step.tmp/meta M2
		rename step.tmp step
		list step.tmp`},

	{"truncate", `
		put f 0123456789
		truncate f 5
		get f
		truncate f 8
		get f
		stat f
		truncate f 0
		stat f
		truncate f -1
		truncate none 1
		truncate f/g 1
		mkdir d
		truncate d 0
		truncate f 3000000
		stat f`},
	{"ftruncate", `
		open h f rw,creat
		write h 0123456789
		ftruncate h 4
		pread h 0 20
		write h x
		pread h 0 20
		ftruncate h 0
		pwrite h 2 y
		pread h 0 20
		ftruncate h -1
		fstat h
		close h
		get f
		open d . r
		ftruncate d 0`},
	{"truncate: while open", `
		put f 0123456789
		open r f r
		open w f rw
		truncate f 5
		pread r 0 20
		fstat w
		pwrite w 5 abc
		truncate f 2
		pread r 0 20
		pread w 0 20
		stat f
		close w
		get f`},
	{"fallocate", `
		open h f rw,creat
		fallocate h 0 100`},

	{"write: anywhere", `
		open h f rw,creat
		pwrite h 5 far
		stat f
		pread h 0 20
		pwrite h 0 near
		write h W
		close h
		get f
		open h f rw
		seek h 0 end
		write h tail
		seek h 1 set
		write h 1
		seek h -2 cur
		seek h -1 set
		seek h 3 cur
		pread h 0 30
		pwrite h -1 x
		pread h -1 1
		close h
		get f`},
	{"write: large", `
		open h f rw,creat
		write h 0123456789abcdef*200000
		stat f
		pread h 1000000 100000
		pwrite h 10 BACK
		pread h 0 200
		close h
		get f
		open h f rw
		pwrite h 3100000 x*300000
		pwrite h 5 y
		stat f
		close h
		get f`},
	{"write: O_APPEND", `
		put f one
		open a f w,append
		open b f rw,append
		write a two
		write b three
		pwrite a 0 four
		pread b 0 30
		truncate f 3
		write a five
		stat f
		close a
		write b six
		close b
		get f`},
	{"write: O_APPEND to a new file", `
		open a f w,append,creat
		write a one
		open b f w,append
		write b two
		write a three
		close a
		get f
		write b four
		close b
		get f`},
	{"write: two descriptors of a file", `
		open a f rw,creat
		open b f rw
		write a AAAA
		write b bb
		pread a 0 10
		pread b 0 10
		close a
		get f
		pwrite b 2 cc
		close b
		get f
		stat f`},
	{"write: on after close of a duplicate", `
		open h f rw,creat
		write h one
		dup h i
		close h
		write i two
		get f
		close i
		get f`},
	{"write: read what is written through another descriptor", `
		put f hello
		open r f r
		open w f rw
		read r 2
		pwrite w 1 EE
		pread r 0 10
		pwrite w 5 -more
		read r 20
		fstat r
		close w
		pread r 0 20
		put f replaced
		pread r 0 20
		samefile r f`},
	{"write: sparse, and where the holes are", `
		open h f rw,creat
		pwrite h 100000 x
		seek h 0 end
		pread h 99990 20
		ftruncate h 200000
		pread h 199990 20
		stat f
		close h
		stat f`},
	{"write: nothing", `
		open h f rw,creat
		write h
		stat f
		close h
		stat f
		get f
		read none 1`},
	{"copy_file_range", `
		put a 0123456789
		open r a r
		open w b rw,creat
		seek r 2 set
		copyrange r w 5
		close w
		get b`},

	{"mmap", `
		put f hello-world
		open h f r
		mmap h 11
		close h
		open h f rw
		mmapwrite h 0 HELLO
		fsync h
		pread h 0 20
		close h
		get f
		open h g rw,creat
		ftruncate h 5000
		mmapwrite h 4990 end
		close h
		stat g
		open h g r
		pread h 4985 10`},
	{"fsync", `
		open h f rw,creat
		write h x
		fsync h
		fdatasync h
		get f
		write h y
		close h
		get f
		open h . r,directory
		fsync h
		fdatasync h
		open h f r
		fsync h`},

	{"stat", `
		stat .
		stat none
		stat none/f
		put f x
		stat f/g
		stat f/
		mkdir d
		stat d/
		stat d//
		access f f
		access f rw
		access f x
		access d rwx
		access none f
		access none/f f
		access f/g f
		chmod f 500
		access f w
		access f rx`},
	{"chmod", `
		put f x
		chmod f 600
		stat f
		open h f r
		fchmod h 640
		fstat h
		mkdir d
		chmod d 700
		stat d
		chmod none 600
		chmod f/g 600
		chmod none/f 600
		open w g rw,creat
		fchmod w 604
		write w x
		fchmod w 606
		close w
		stat g`},
	{"chmod: set-user-ID", `
		put f x
		chmod f 4755
		stat f`},
	{"chmod: the sticky bit", `
		mkdir d
		chmod d 1777
		stat d
		chmod d 1755
		stat d
		chmod d 755
		stat d`},
	{"chmod: the set-group-ID bit", `
		mkdir d
		chmod d 2770
		stat d
		chmod d 2750
		stat d
		chmod d 750
		stat d`},
	{"chown", `
		put f x
		chown f self
		chown f other
		chown none self
		mkdir d
		chown d self`},
	{"utimes", `
		put f x
		mtime f
		utimes f 1000000000 1100000000
		mtime f
		utimes f omit 1200000000
		mtime f
		utimes f 1300000000 omit
		mtime f
		utimes f now now
		mtime f
		utimes f 5 5
		put f y
		mtime f
		open h g rw,creat
		write h x
		utimes g 7 7
		mtime g
		close h
		mtime g
		mkdir d
		utimes d 9 9
		mtime d
		utimes none 1 1
		utimes f/g 1 1
		utimes f omit omit
		utimes f -1 -1`},
	{"utimes: of access", `
		put f x
		utimes f 1000000000 1100000000
		times f`},
	{"times: of a change", `
		put f x
		utimes f 5 5
		truncate f 0
		mtime f
		utimes f 5 5
		chmod f 600
		mtime f
		open h f w
		close h
		mtime f
		rename f g
		mtime g
		get g
		mtime g`},

	{"list: while it changes", `
		mkdir d
		list d
		open h d r,directory
		put d/a x
		list d
		open w d/b w,creat
		list d
		unlink d/a
		list d
		close w
		list d
		rename d/b d/c
		list d
		list none
		list d/c`},
	{"list: many", `
		mkdir d
		many d 1100
		howmany d
		stat d/00000
		stat d/01099
		rename d e
		howmany e
		sweep e
		rmdir e`},

	{"link", `
		put f x
		link f g`},
	{"link: what cannot be", `
		mkdir d
		link d e
		link none g`},
	{"symlink", `
		symlink target l`},
	{"symlink: what cannot be", `
		put f x
		symlink t none/l
		symlink t f/l
		symlink t @256
		symlink t f
		readlink f
		readlink none`},
	{"mknod", `
		mknod f 640
		stat f
		mknod f 640
		put f x
		get f`},
	{"mkfifo", `
		mkfifo p 644`},
	{"xattrs", `
		put f x
		setxattr f user.a v`},
	{"xattrs: where there are none", `
		put f x
		getxattr f user.a`},
	{"xattrs: list", `
		put f x
		listxattr f`},

	{"flock", `
		put f x
		open a f rw
		open b f rw
		flock a ex
		flock b ex
		flock b sh
		flock a un
		flock b ex
		close b
		flock a sh`},
	{"fcntl locks", `
		put f x
		open a f rw
		open b f rw
		lock a ex
		lock b ex
		lock b sh
		close a
		lock b ex`},

	{"numpy.savez", `
		open h a.npz rw,creat,trunc
		write h local-header-of-a
		write h aaaaaaaaaa*10000
		seek h 0 cur
		seek h 5 set
		write h SIZES
		seek h 0 end
		write h local-header-of-b
		write h bbbbbbbbbb*10000
		seek h 100022 set
		write h SIZES
		seek h 0 end
		write h central-directory
		close h
		get a.npz`},
	{"h5py.File", `
		open h a.h5 rw,creat,trunc
		flock h ex
		pwrite h 0 superblock
		pwrite h 2048 heap*100
		pwrite h 800 tree*100
		pread h 0 10
		pwrite h 10000 data*5000
		pwrite h 96 root
		ftruncate h 40000
		pwrite h 0 SUPERBLOCK
		fsync h
		flock h un
		close h
		get a.h5
		open h a.h5 rw
		flock h ex
		pread h 0 10
		pwrite h 2048 HEAP
		close h
		get a.h5`},
	{"torch.save over the former file", `
		put m.pt former
		open h m.pt w,creat,trunc
		write h PK*50000
		write h tail
		close h
		stat m.pt
		put m.pt.tmp newer
		open h m.pt.tmp r
		fsync h
		close h
		unlink m.pt
		rename m.pt.tmp m.pt
		get m.pt`},
}
