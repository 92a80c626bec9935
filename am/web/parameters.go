package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// parameters are those of an address or of a form. What is given and is not as it has to be is in
// err, so that nothing else is taken in its place.
type parameters struct {
	url.Values
	err error // a badParameter; nil: all that was read is as it has to be
}

// parametersOf returns those of a request's address.
func parametersOf(r *http.Request) *parameters { return parseParameters(r.URL.RawQuery) }

// parseParameters returns parameters that are encoded as in an address.
func parseParameters(text string) *parameters {
	p := &parameters{}
	var err error
	if p.Values, err = url.ParseQuery(text); err != nil {
		p.err = badParameter{"the parameters cannot be read: " + err.Error()}
	}
	return p
}

// badParameter says what is wrong with a parameter.
type badParameter struct{ text string }

func (b badParameter) Error() string { return b.text }

// number returns a parameter that is a number of at least so many; other without it.
func (p *parameters) number(name string, other, least int) int {
	text := p.Get(name)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		p.bad(name, fmt.Sprintf("a number of at least %d", least))
		return other
	}
	return n
}

// bad notes that a parameter is not what it has to be.
func (p *parameters) bad(name, want string) {
	if p.err == nil {
		p.err = badParameter{fmt.Sprintf("%s=%s: write %s", name, p.Get(name), want)}
	}
}
