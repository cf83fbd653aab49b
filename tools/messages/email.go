package messages

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"trajgen/tools/internal/chars"
	"trajgen/tools/messages/outbox"
	"trajgen/tools/web/source"
)

// nonce is the id of a message that its sender gives it: the same when it is sent again.
func nonce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:12])
}

// email sends over SMTP.
type email struct {
	Email
	password string
}

const subjectLength = 78 // characters

func (e *email) send(ctx context.Context, m outbox.Message, key string) (string, error) {
	message := mail.NewMsg()
	if err := message.From(e.From); err != nil {
		return "", source.Errorf(source.Operator, source.Malformed, "email: from is not an address")
	}
	if err := message.To(id(m.Channel)); err != nil {
		return "", source.Errorf(source.Agent, source.Malformed, "email: %.200q is not an address", id(m.Channel))
	}
	_, domain, _ := strings.Cut(e.From, "@")
	domain = strings.Trim(domain, "<> ")
	own := nonce(key) + "@" + domain
	message.SetMessageIDWithValue(own)
	message.SetDate()
	subject, _, _ := strings.Cut(cmp.Or(strings.TrimSpace(m.Text), "Files"), "\n")
	message.Subject(chars.First(subject, subjectLength, "…"))
	message.SetBodyString(mail.TypeTextPlain, m.Text)
	for _, file := range m.Files {
		if err := message.AttachReader(file.Name, bytes.NewReader(file.Data)); err != nil {
			return "", source.Errorf(source.Agent, source.Malformed, "email: %.200q cannot be attached", file.Name)
		}
	}
	client, err := e.client()
	if err == nil {
		err = client.DialAndSendWithContext(ctx, message)
	}
	if err != nil {
		return "", e.failed(ctx, err)
	}
	return own, nil
}

// client speaks to the server.
func (e *email) client() (*mail.Client, error) {
	_, domain, _ := strings.Cut(e.From, "@")
	host, number, _ := net.SplitHostPort(e.Server)
	port, _ := strconv.Atoi(number)
	options := []mail.Option{mail.WithPort(port), mail.WithTLSPolicy(mail.TLSMandatory), mail.WithHELO(strings.Trim(domain, "<> "))}
	auth := mail.SMTPAuthAutoDiscover
	switch e.TLS {
	case "tls":
		options = append(options, mail.WithSSL())
	case "none":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
		auth = mail.SMTPAuthPlainNoEnc // as the operator says
	}
	if e.password != "" {
		options = append(options, mail.WithSMTPAuth(auth), mail.WithUsername(cmp.Or(e.User, e.From)), mail.WithPassword(e.password))
	}
	return mail.NewClient(host, options...)
}

// failed is what an error means.
func (e *email) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(err.Error(), "AUTH") || strings.Contains(err.Error(), "535"):
		return source.Errorf(source.Operator, source.Refused, "email: the server refuses the password in %s", e.PasswordEnv)
	}
	return source.Errorf(source.Outage, source.Unavailable, "email: %s", chars.First(e.hide(err.Error()), 300, "…"))
}

// hide takes the password out of a text.
func (e *email) hide(text string) string {
	if e.password == "" {
		return text
	}
	return strings.ReplaceAll(text, e.password, "[secret]")
}

func (e *email) react(context.Context, outbox.Reaction, bool) error {
	return source.Errorf(source.Agent, Unsupported, "e-mail takes no reactions")
}
