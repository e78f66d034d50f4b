package mongotest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A password with every kind of character that a URI has to encode.
const (
	user     = "svc:user"
	password = "p@ss/w:rd%?#"
)

// secrets are what a secured server and its clients prove themselves with.
type secrets struct {
	key    string // file of the replica set's members
	server string // file of the server's certificate and its key
	ca     string // file of the certificate that signed it
	client *tls.Config
}

func newSecrets(dir string) (*secrets, error) {
	s := &secrets{
		key: filepath.Join(dir, "keyfile"), server: filepath.Join(dir, "server.pem"), ca: filepath.Join(dir, "ca.pem"),
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := certificate("svc test CA", 1)
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := certificate("svc test server", 2)
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	serverPEM := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caPEM)
	s.client = &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	return s, errors.Join(
		os.WriteFile(s.key, []byte(rand.Text()), 0o600), // the server refuses one that others may read
		os.WriteFile(s.server, serverPEM, 0o600),
		os.WriteFile(s.ca, caPEM, 0o600),
	)
}

func certificate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func (s *secrets) flags() []string {
	return []string{
		"--auth", "--keyFile", s.key, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", s.server, "--tlsCAFile", s.ca,
		"--tlsAllowConnectionsWithoutCertificates",
	}
}

func (s *secrets) createUser() bson.D {
	return bson.D{{Key: "createUser", Value: user}, {Key: "pwd", Value: password}, {Key: "roles", Value: bson.A{"root"}}}
}

func (s *secrets) uri(addr, set string) string {
	return "mongodb://" + url.QueryEscape(user) + ":" + url.QueryEscape(password) + "@" + addr +
		"/?replicaSet=" + set + "&tls=true&tlsCAFile=" + url.QueryEscape(s.ca)
}
