package access

import (
	"net/http"
	"time"
)

// NewServer returns a server that bounds what a client can hold of this process: the time
// for a request and its response, and the size of headers.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
}
