package conf

import "strings"

// maxSubstitutions is Configuration.MAX_SUBST.
const maxSubstitutions = 20

// maxText bounds what a value that refers to itself twice can grow to.
const maxText = 1 << 16

// substitute replaces ${...}, the innermost first as Hadoop does. A name
// without a value stays as it is, and ends the work on the text.
func (c *Conf) substitute(text string) string {
	seen := map[string]bool{}
	for range maxSubstitutions {
		start, end := innermost(text)
		if start < 0 {
			return text
		}
		name := text[start+2 : end]
		if seen[text] { // a cycle
			return text
		}
		seen[text] = true
		v, ok := c.variable(name)
		if !ok || len(text)+len(v) > maxText {
			return text
		}
		text = text[:start] + v + text[end+1:]
	}
	return text
}

// innermost finds the first ${...} without another one inside.
func innermost(text string) (start, end int) {
	from := 0
	for {
		i := strings.Index(text[from:], "}")
		if i < 0 {
			return -1, -1
		}
		end = from + i
		start = strings.LastIndex(text[:end], "${")
		if start >= from && end > start+2 {
			return start, end
		}
		from = end + 1
	}
}

func (c *Conf) variable(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "env."); ok {
		if key, def, ok := strings.Cut(rest, ":-"); ok {
			if v, set := c.getenv(key); set && v != "" {
				return v, true
			}
			return def, true
		}
		if key, def, ok := strings.Cut(rest, "-"); ok {
			if v, set := c.getenv(key); set {
				return v, true
			}
			return def, true
		}
		return c.getenv(rest)
	}
	if name == "user.name" {
		if v, ok := c.getenv("USER"); ok {
			return v, true
		}
	}
	return c.raw(name)
}
