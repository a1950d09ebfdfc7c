// Leads the tests of the module aztables to our servers. run.sh copies this file beside them.
//
// The tests name the hosts of Azure. A proxy of their own leads these hosts to the ports of our servers, and an endpoint of managed
// identities gives tokens, which our servers accept whatever they are.
package aztables

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func init() {
	proxy := listen()
	go accept(proxy)
	setenv("HTTPS_PROXY", "http://"+proxy.Addr().String())

	identities := listen()
	go func() {
		panic(http.Serve(identities, http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
			expiry := time.Now().Add(time.Hour).Unix()
			fmt.Fprintf(response, `{"access_token":"any","expires_on":"%d","token_type":"Bearer"}`, expiry)
		})))
	}()
	setenv("IDENTITY_ENDPOINT", "http://"+identities.Addr().String())
	setenv("IDENTITY_HEADER", "any")
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return listener
}

func setenv(name, value string) {
	if err := os.Setenv(name, value); err != nil {
		panic(err)
	}
}

func accept(proxy net.Listener) {
	for {
		client, err := proxy.Accept()
		if err != nil {
			panic(err)
		}
		go connect(client)
	}
}

// Connects a client of the proxy with the server of the host that it names.
func connect(client net.Conn) {
	defer client.Close()
	request, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	port := os.Getenv("TABLESDK_STORAGE_PORT")
	if strings.Contains(request.Host, ".table.cosmos.azure.com:") {
		port = os.Getenv("TABLESDK_COSMOS_DB_PORT")
	}
	server, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
	}()
	_, _ = io.Copy(client, server)
}
