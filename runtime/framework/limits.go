package framework

// MaxString is how long Linux lets a word or variable be that a program is started with, its
// NUL included: MAX_ARG_STRLEN, linux/binfmts.h, with pages of 4 KiB.
const MaxString = 128 << 10

// Fits reports whether a program can be started with a variable.
func Fits(name, value string) bool { return len(name)+len("=")+len(value) < MaxString }
