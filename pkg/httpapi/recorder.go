package httpapi

import (
	"net/http"
)

// recorder notes the status and size of an answer.
type recorder struct {
	http.ResponseWriter
	begin  func() // called once, before the answer begins
	status int
	bytes  int64
}

func (w *recorder) began(status int) {
	if w.status == 0 {
		w.status = status
		w.begin()
	}
}

func (w *recorder) WriteHeader(status int) {
	w.began(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	w.began(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
