package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// errNotFound is returned by views for what the job does not have.
var errNotFound = errors.New("the job has no such thing")

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

// asksJSON reports whether a request is for an address of JSON.
func asksJSON(r *http.Request) bool { return path.Ext(r.URL.Path) == ".json" }

// Fail answers with an error: as text, or at addresses of JSON as the object that
// docs/json.md describes.
func Fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	if !asksJSON(r) {
		http.Error(w, message, status)
		return
	}
	f := proto.Failure{Code: 1, Kind: "failed", Message: message} // as commands fail: package client
	switch status {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed:
		f.Code, f.Kind = 2, "usage"
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		f.Code, f.Kind = 3, "unreachable"
	case http.StatusForbidden:
		f.Code, f.Kind = 4, "denied"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(f.JSON(), '\n')) // the reader went away
}

// failWith answers with what a view returned.
func failWith(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, new(badParameter)):
		status = http.StatusBadRequest
	case errors.Is(err, errNotFound), inspect.IsMissing(err), inspect.IsUnplannable(err):
		status = http.StatusNotFound
	case errors.Is(err, errTooMany):
		status = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	}
	Fail(w, r, status, err.Error())
}

// answerJSON answers with a value that is a JSON object.
func answerJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	text, err := proto.VersionedJSON(v)
	if err != nil {
		Fail(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, status, text)
}

func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the reader went away
}

// unknown answers requests that no pattern matches: as the mux does, but with JSON where that
// was asked for. Nor does a path match that is not clean: the mux would lead to a clean one on its
// host, and does not know below which prefix its pages are.
func unknown(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.Path; at != path.Clean(at) {
			Fail(w, r, http.StatusNotFound, "there is nothing at "+at)
			return
		}
		if _, pattern := mux.Handler(r); pattern != "" || !asksJSON(r) {
			mux.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			Fail(w, r, http.StatusMethodNotAllowed, r.Method+" is not allowed there")
			return
		}
		Fail(w, r, http.StatusNotFound, "there is nothing at "+r.URL.Path)
	})
}
