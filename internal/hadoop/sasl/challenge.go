package sasl

import (
	"errors"
	"fmt"
	"strings"
)

// challenge is a server's first message (RFC 2831, section 2.1.1).
type challenge struct {
	realm     string
	nonce     string
	qops      []string
	ciphers   []string
	algorithm string
}

// directives are the names and values of a message; a name may come again.
type directive struct{ name, value string }

func parseChallenge(b []byte) (challenge, error) {
	list, err := parseDirectives(b)
	if err != nil {
		return challenge{}, err
	}
	var c challenge
	realms := 0
	for _, d := range list {
		switch d.name {
		case "realm":
			if realms++; realms == 1 {
				c.realm = d.value
			}
		case "nonce":
			if c.nonce != "" {
				return c, errors.New("the challenge has two nonces")
			}
			c.nonce = d.value
		case "qop":
			c.qops = splitList(d.value)
		case "cipher":
			c.ciphers = splitList(d.value)
		case "algorithm":
			c.algorithm = d.value
		}
	}
	if c.nonce == "" {
		return c, errors.New("the challenge has no nonce")
	}
	if c.algorithm != "md5-sess" {
		return c, fmt.Errorf("the challenge asks for the algorithm %q, and only md5-sess is supported", c.algorithm)
	}
	if len(c.qops) == 0 {
		c.qops = []string{Auth} // the default of section 2.1.1
	}
	return c, nil
}

func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// parseDirectives reads name=value and name="value" with backslash escapes,
// separated by commas and white space.
func parseDirectives(b []byte) ([]directive, error) {
	var list []directive
	for i := 0; ; {
		for i < len(b) && (b[i] == ',' || isSpace(b[i])) {
			i++
		}
		if i == len(b) {
			return list, nil
		}
		start := i
		for i < len(b) && b[i] != '=' && b[i] != ',' {
			i++
		}
		if i == len(b) || b[i] != '=' {
			return nil, fmt.Errorf("the directive %q has no value", clip(b[start:i]))
		}
		name := strings.ToLower(strings.TrimSpace(string(b[start:i])))
		if name == "" {
			return nil, errors.New("a directive has no name")
		}
		for i++; i < len(b) && isSpace(b[i]); i++ {
		}
		var value []byte
		if i < len(b) && b[i] == '"' {
			closed := false
			for i++; i < len(b) && !closed; i++ {
				switch {
				case b[i] == '"':
					closed = true
				case b[i] == '\\' && i+1 < len(b):
					i++
					value = append(value, b[i])
				default:
					value = append(value, b[i])
				}
			}
			if !closed {
				return nil, fmt.Errorf("the value of %q has no closing quote", clip([]byte(name)))
			}
			for i < len(b) && isSpace(b[i]) {
				i++
			}
			if i < len(b) && b[i] != ',' {
				return nil, fmt.Errorf("after the value of %q there is no comma", clip([]byte(name)))
			}
		} else {
			for start = i; i < len(b) && b[i] != ','; i++ {
			}
			value = []byte(strings.TrimSpace(string(b[start:i])))
		}
		list = append(list, directive{name, string(value)})
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func clip(b []byte) string {
	if len(b) > 40 {
		b = b[:40]
	}
	return string(b)
}

// quote writes a quoted-string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
