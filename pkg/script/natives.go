package script

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/script/guard"
)

// natives is the object of Go functions that the glue of modules uses; functions are made when they are asked for.
func (r *run) natives() *goja.Object {
	if r.native == nil {
		r.native = r.vm.NewDynamicObject(&nativeObject{r: r, made: map[string]goja.Value{}})
	}
	return r.native
}

// nativeObject makes natives by name. The glue reads them once.
type nativeObject struct {
	r    *run
	made map[string]goja.Value
}

// Get makes a function.
func (n *nativeObject) Get(name string) goja.Value {
	if v, ok := n.made[name]; ok {
		return v
	}
	f, ok := n.r.nativeFunction(name)
	if !ok {
		return nil
	}
	v := n.r.vm.ToValue(f)
	n.made[name] = v
	return v
}

// Set refuses.
func (*nativeObject) Set(string, goja.Value) bool { return false }

// Has says whether there is such a function.
func (n *nativeObject) Has(name string) bool {
	_, ok := n.r.nativeFunction(name)
	return ok
}

// Delete refuses.
func (*nativeObject) Delete(string) bool { return false }

// Keys lists nothing.
func (*nativeObject) Keys() []string { return nil }

// nativeFunction finds a function of the glue by its name.
func (r *run) nativeFunction(name string) (any, bool) {
	switch name {
	case "text":
		return r.bytesToText, true
	case "env":
		return func(goja.FunctionCall) goja.Value { return r.envObject() }, true
	case "console":
		return func(goja.FunctionCall) goja.Value { return r.logger() }, true
	case "hash":
		return r.cryptoHash, true
	case "hmac":
		return r.cryptoHMAC, true
	case "uuid":
		return r.cryptoUUID, true
	case "randomBytes":
		return r.cryptoRandom, true
	case "timingSafeEqual":
		return r.cryptoEqual, true
	case "setTimeout":
		return r.setTimer(false), true
	case "setInterval":
		return r.setTimer(true), true
	case "clearTimeout", "clearInterval":
		return r.clear, true
	case "sleep":
		return r.sleep, true
	case "ObjectId":
		return r.constructor(r.newObjectID, objectIDClass), true
	case "Decimal128":
		return r.constructor(r.newDecimal, decimalClass), true
	}
	return nil, false
}

// logger is console and ctx.log.
func (r *run) logger() *goja.Object {
	obj := r.vm.NewObject()
	for _, name := range []string{"debug", "log", "info", "warn", "error"} {
		level := name
		if level == "log" {
			level = "info"
		}
		r.method(obj, name, func(call goja.FunctionCall) goja.Value {
			if r.call.Log != nil {
				r.say(level, r.logText(call.Arguments))
			}
			return goja.Undefined()
		})
	}
	return obj
}

// progress is ctx.progress.
func (r *run) progress(call goja.FunctionCall) goja.Value {
	o := &out{r: r, left: r.call.Limits.MaxResult}
	v, _, err := o.value(call.Argument(0), nil, false, 0)
	if err != nil {
		r.throw(err)
	}
	r.call.Progress(v)
	return goja.Undefined()
}

// The bounds of a run's log: of a line, and of all.
const (
	maxLine     = 8 << 10
	maxLines    = 10_000
	maxLogBytes = 1 << 20
)

// say logs a line, unless there is too much already: those are counted.
func (r *run) say(level, text string) {
	if r.lines >= maxLines || r.logged+len(text) > maxLogBytes {
		r.unsaid++
		return
	}
	r.lines++
	r.logged += len(text)
	r.call.Log(Line{Time: r.engine.now(), Level: level, Message: text})
}

// sayRest ends the log.
func (r *run) sayRest() {
	if r.unsaid > 0 {
		r.call.Log(Line{Time: r.engine.now(), Level: "warn", Message: fmt.Sprintf(
			"lines left out: %d; one run logs at most %d lines and %d KiB", r.unsaid, maxLines, maxLogBytes>>10)})
	}
}

func (r *run) logText(args []goja.Value) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if b.Len() > maxLine {
			break
		}
		b.WriteString(r.show(a))
	}
	return shortenTo(b.String(), maxLine)
}

// show gives plain objects and lists as JSON, everything else as text.
func (r *run) show(v goja.Value) string {
	obj, ok := v.(*goja.Object)
	if !ok {
		return v.String()
	}
	_, isLazy := guard.Exported(obj).(*lazy)
	if class := obj.ClassName(); !isLazy && class != "Array" && class != "Object" {
		return v.String()
	}
	if _, isBoxed := guard.Exported(obj).(*boxed); isBoxed {
		return v.String()
	}
	json := r.vm.Get("JSON").ToObject(r.vm)
	stringify, ok := goja.AssertFunction(json.Get("stringify"))
	if !ok {
		return v.String()
	}
	text, err := stringify(json, v)
	if err != nil {
		panic(err)
	}
	return text.String()
}

func (r *run) setTimer(repeat bool) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		f, ok := goja.AssertFunction(call.Argument(0))
		if !ok {
			panic(r.vm.NewTypeError("a timer takes a function"))
		}
		var args []goja.Value
		if len(call.Arguments) > 2 {
			args = call.Arguments[2:]
		}
		after := max(time.Millisecond, milliseconds(call.Argument(1)))
		interval := time.Duration(0)
		if repeat {
			interval = after
		}
		return r.vm.ToValue(r.addTimer(after, interval, func() error {
			_, err := f(goja.Undefined(), args...)
			return err
		}))
	}
}

// milliseconds reads a duration, at most a day.
func milliseconds(v goja.Value) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(min(max(v.ToInteger(), 0), day.Milliseconds())) * time.Millisecond
}

func (r *run) clear(call goja.FunctionCall) goja.Value {
	r.clearTimer(call.Argument(0).ToInteger())
	return goja.Undefined()
}

func (r *run) sleep(call goja.FunctionCall) goja.Value {
	promise, resolve, _ := r.vm.NewPromise()
	r.addTimer(milliseconds(call.Argument(0)), 0, func() error { return resolve(goja.Undefined()) })
	return r.vm.ToValue(promise)
}

// constructor makes the constructor of a class, of which all boxed values of that class are instances.
func (r *run) constructor(build func(goja.ConstructorCall) *goja.Object, c class) *goja.Object {
	f, prototype := r.vm.ToValue(build).ToObject(r.vm), r.prototype(c)
	err := f.DefineDataProperty("prototype", prototype, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	if err == nil {
		err = prototype.DefineDataProperty("constructor", f, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	if err != nil {
		panic(err)
	}
	return f
}

// newObjectID is new ObjectId(hex?).
func (r *run) newObjectID(call goja.ConstructorCall) *goja.Object {
	arg := call.Argument(0)
	if goja.IsUndefined(arg) {
		return r.box(bson.NewObjectID(), objectIDClass)
	}
	id, err := bson.ObjectIDFromHex(word(arg))
	if err != nil {
		panic(r.vm.NewTypeError("an ObjectId is 24 hex digits"))
	}
	return r.box(id, objectIDClass)
}

// newDecimal is new Decimal128(text).
func (r *run) newDecimal(call goja.ConstructorCall) *goja.Object {
	d, err := bson.ParseDecimal128(word(call.Argument(0)))
	if err != nil {
		panic(r.vm.NewTypeError("a Decimal128 is a number with at most 34 digits"))
	}
	return r.box(d, decimalClass)
}

// data reads a text or the content of a Uint8Array.
func (r *run) data(v goja.Value) []byte {
	if obj, ok := v.(*goja.Object); ok {
		if b, ok := bytesOf(obj); ok {
			return b
		}
	}
	if s, ok := guard.Exported(v).(string); ok {
		return []byte(s)
	}
	panic(r.vm.NewTypeError("expected a text or a Uint8Array"))
}

func (r *run) bytesToText(call goja.FunctionCall) goja.Value {
	b := r.data(call.Argument(0))
	if !utf8.Valid(b) {
		return r.vm.ToValue(strings.ToValidUTF8(string(b), "\uFFFD"))
	}
	return r.vm.ToValue(string(b))
}

// word is a short text: a long one is none of those that are asked for.
func word(v goja.Value) string {
	s, ok := v.ToString().(goja.String)
	if ok && s.Length() > 100 {
		return ""
	}
	return v.String()
}

func (r *run) algorithm(v goja.Value) func() hash.Hash {
	switch strings.ToLower(word(v)) {
	case "sha256", "sha-256":
		return sha256.New
	case "sha384", "sha-384":
		return sha512.New384
	case "sha512", "sha-512":
		return sha512.New
	}
	panic(r.vm.NewTypeError("the algorithm is sha256, sha384 or sha512"))
}

// encoded gives bytes as hex, which is the default, base64, base64url, or bytes.
func (r *run) encoded(b []byte, encoding goja.Value) goja.Value {
	name := "hex"
	if !goja.IsUndefined(encoding) {
		name = word(encoding)
	}
	switch name {
	case "hex":
		return r.vm.ToValue(hex.EncodeToString(b))
	case "base64":
		return r.vm.ToValue(base64.StdEncoding.EncodeToString(b))
	case "base64url":
		return r.vm.ToValue(base64.RawURLEncoding.EncodeToString(b))
	case "bytes":
		return r.jsBytes(b)
	}
	panic(r.vm.NewTypeError("the encoding is hex, base64, base64url or bytes"))
}

func (r *run) cryptoHash(call goja.FunctionCall) goja.Value {
	h := r.algorithm(call.Argument(0))()
	h.Write(r.data(call.Argument(1)))
	return r.encoded(h.Sum(nil), call.Argument(2))
}

func (r *run) cryptoHMAC(call goja.FunctionCall) goja.Value {
	h := hmac.New(r.algorithm(call.Argument(0)), r.data(call.Argument(1)))
	h.Write(r.data(call.Argument(2)))
	return r.encoded(h.Sum(nil), call.Argument(3))
}

func (r *run) cryptoUUID(goja.FunctionCall) goja.Value {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return r.vm.ToValue(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// maxRandom bounds one randomBytes.
const maxRandom = 64 << 10

func (r *run) cryptoRandom(call goja.FunctionCall) goja.Value {
	n := call.Argument(0).ToInteger()
	if n < 0 || n > maxRandom {
		panic(r.vm.NewTypeError("randomBytes takes a number from 0 to 65536"))
	}
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return r.jsBytes(b)
}

func (r *run) cryptoEqual(call goja.FunctionCall) goja.Value {
	return r.vm.ToValue(subtle.ConstantTimeCompare(r.data(call.Argument(0)), r.data(call.Argument(1))) == 1)
}
