package rpc

import (
	"errors"
	"regexp"
	"strings"
)

// globMeans are the characters that a pattern of principals has in a meaning of its own, or that
// would have one in a regular expression, which that of Hadoop is translated into, too
// (org.apache.hadoop.fs.GlobPattern, over the same syntax: re2j's).
var globMeans = map[byte]string{
	'*': ".*", '?': ".", '{': "(?:",
	'.': `\.`, '$': `\$`, '(': `\(`, ')': `\)`, '|': `\|`, '+': `\+`,
}

// glob translates a pattern of principals: * stands for any characters, slashes among them, ? for one,
// [a-c] and [!a-c] for one of a set or of none, {a,b} for alternatives, and \ takes a sign as it is.
// The pattern is of the whole name.
func glob(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	groups, set := 0, false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		means, special := globMeans[c]
		switch {
		case c == '\\':
			if i++; i == len(pattern) {
				return nil, errors.New(`nothing follows the last \`)
			}
			means, special = pattern[i-1:i+1], true
		case c == '{':
			groups++
		case c == ',' && groups > 0:
			means, special = "|", true
		case c == '}' && groups > 0:
			groups--
			means, special = ")", true
		case c == '[' && set:
			return nil, errors.New("a [ has no ]")
		case c == '[':
			set = true
		case c == ']':
			set = false
		case c == '^' && !set:
			means, special = `\^`, true
		case c == '!' && set && pattern[i-1] == '[':
			means, special = "^", true
		}
		if !special {
			means = pattern[i : i+1]
		}
		b.WriteString(means)
	}
	switch {
	case set:
		return nil, errors.New("a [ has no ]")
	case groups > 0:
		return nil, errors.New("a { has no }")
	}
	return regexp.Compile("^(?:" + b.String() + ")$")
}
