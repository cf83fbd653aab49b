//go:build linux

package build_test

// dockerfile is a Dockerfile of the test, with the files beside it.
type dockerfile struct {
	name, text string
	files      map[string]string
	args       map[string]string
	target     string
}

// dockerfiles use all that the builder knows.
var dockerfiles = []dockerfile{
	{name: "shell and exec form", text: `FROM base
RUN echo shell > /shell
RUN ["sh", "-c", "echo exec > /exec"]
RUN ["touch", "/plain $HOME"]
`},
	{name: "shell instruction", text: `FROM base
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN [[ a == a ]] && echo bash > /bash
`},
	{name: "heredocs", text: `FROM base
RUN <<EOF
echo one > /one
echo two > /two
EOF
RUN <<-CHOMP
	echo tab > /tab
CHOMP
RUN cat <<A > /a && cat <<B > /b
text a
A
text b
B
RUN <<EOF
#!/bin/bash
[[ $0 == */EOF ]] && echo script > /script
EOF
`},
	{name: "copy heredocs", text: `FROM base
ARG NAME=world
COPY <<one.txt <<"two.txt" /texts/
hello $NAME
one.txt
hello $NAME
two.txt
COPY --chmod=755 <<EOF /run.sh
#!/bin/sh
echo run
EOF
RUN /run.sh > /out
`},
	{name: "environment", text: `FROM base
ENV A=1 B="two words" C='$A'
ENV D=$A-${B}-${E:-default} PATH=/opt/bin:$PATH
ENV OLD form of it
RUN echo "$A|$B|$C|$D|$OLD|$PATH" > /env
`},
	{name: "arguments", text: `ARG TAG=base
ARG GLOBAL=global
FROM $TAG
ARG GLOBAL
ARG GIVEN=default
ARG MISSING
ARG TARGETARCH
RUN echo "$GLOBAL|$GIVEN|${MISSING-unset}|$TAG" > /args; test -n "$TARGETARCH"
ENV GIVEN=env
RUN echo "$GIVEN" > /given
`, args: map[string]string{"GIVEN": "caller"}},
	{name: "working directory", text: `FROM base
WORKDIR /a/b
WORKDIR c
RUN pwd > here
WORKDIR /tmp/../x
RUN pwd > here
USER app
WORKDIR /home/app/own
RUN pwd > here
`},
	{name: "users", text: `FROM base
USER app
RUN id -u > ~/uid; id -g > ~/gid; id -G > ~/groups; echo $HOME > ~/home
USER 0
RUN id -u > /uid
USER 1234:5678
RUN id -u > /tmp/uid; id -g > /tmp/gid
USER root
RUN chown app:app /uid && chmod 4750 /uid
`},
	{name: "stages", text: `FROM base AS one
RUN mkdir /out && echo built > /out/file && ln -s file /out/link && chmod 700 /out
FROM base AS unused
RUN exit 1
FROM one AS two
RUN echo more >> /out/file
FROM base
COPY --from=one /out /one
COPY --from=two /out/file /two
COPY --from=0 /out/link /zero
`},
	{name: "target", target: "first", text: `FROM base AS first
RUN echo first > /first
FROM base
RUN exit 1
`},
	{name: "copy from an image", text: `FROM scratch
COPY --from=base /etc/passwd /
COPY --from=base /home /home
`},
	{name: "scratch", text: `FROM scratch
COPY a.txt b/ /
WORKDIR /w
`, files: map[string]string{"a.txt": "a", "b/c.txt": "c"}},
	{name: "copy", text: `FROM base
WORKDIR /w
COPY one.txt .
COPY one.txt renamed
COPY one.txt new/
COPY dir dir
COPY dir /into/
COPY one.txt two.txt /both/
COPY ./dir/../one.txt /up
COPY . /all
`, files: map[string]string{"one.txt": "1", "two.txt": "2", "dir/x": "x", "dir/sub/y": "#!y"}},
	{name: "globs", text: `FROM base
COPY *.txt /txt/
COPY d?r/[ab]* /ab/
COPY --chown=app:extra --chmod=640 *.txt /owned/
COPY --chown=7 one.txt /seven
`, files: map[string]string{"one.txt": "1", "two.txt": "2", "three.md": "3", "dir/a1": "a", "dir/b1": "b", "dir/c1": "c"}},
	{name: "exclude and ignore", text: `FROM base
COPY --exclude=*.md --exclude=sub/skip . /some
COPY . /all
`, files: map[string]string{".dockerignore": "secret\n**/*.log\n!keep.log\nDockerfile\n.dockerignore\n", "a.md": "m", "a.txt": "t", "secret/key": "k", "x.log": "l",
		"keep.log": "k", "sub/y.log": "l", "sub/skip": "s", "sub/z": "z"}},
	{name: "parents", text: `FROM base AS made
RUN mkdir -p /a/b && echo made > /a/b/file && ln -s a /l
FROM base
COPY --parents one/two/x.txt one/*/y.txt one/two/deep /to
COPY --parents --chown=app ./one/./two /pivot/
COPY --parents --from=made /a/b /whole
COPY --parents --from=made /l/./b/file /part
`, files: map[string]string{"one/two/x.txt": "x", "one/two/y.txt": "y", "one/three/y.txt": "3", "one/two/deep/z": "z"}},
	{name: "modes in letters", text: `FROM base
COPY --chmod=u+x,go-r a.txt /a
COPY --chmod=u=rwX,go=rX dir /dir
COPY --chmod=4755 a.txt /s
COPY --chmod=g=u,o= dir/run.sh /r
`, files: map[string]string{"a.txt": "a", "dir/b": "b", "dir/run.sh": "#!/bin/sh\n", "dir/sub/c": "c"}},
	{name: "copy through links", text: `FROM base
RUN mkdir -p /real/dir && ln -s /real /link && ln -s real/dir /rel && touch /real/file && ln -s /real/file /flink
COPY a.txt /link/
COPY a.txt /rel/b.txt
COPY a.txt /flink
COPY --link a.txt /linked/a.txt
`, files: map[string]string{"a.txt": "a"}},
	{name: "add", text: `FROM base
ADD a.txt /plain/
ADD made.tar /unpacked/
ADD --unpack=false made.tar /kept/
`, files: map[string]string{"a.txt": "a"}},
	{name: "bind mounts", text: `FROM base AS made
RUN mkdir /made && echo made > /made/file
FROM base
RUN --mount=type=bind,source=src,target=/src --mount=type=bind,from=made,source=/made,target=/m/n cat /src/a.txt /m/n/file > /got
WORKDIR /wd
RUN --mount=type=bind,target=. cat src/a.txt > /whole
RUN test ! -e /src && test ! -e /m && echo gone > /gone
`, files: map[string]string{"src/a.txt": "a\n"}},
	{name: "cache and tmpfs", text: `FROM base
RUN --mount=type=cache,target=/var/cache/x --mount=type=tmpfs,target=/scratch echo c > /var/cache/x/file && echo t > /scratch/file && echo ok > /ok
RUN test ! -e /scratch && test ! -e /var/cache/x/file && echo gone > /gone
`},
	{name: "caches are kept", text: `FROM base
RUN --mount=type=cache,target=/c,mode=750 echo 1 > /c/one && mkdir /c/d && echo 2 > /c/d/two && ln -s one /c/link
RUN --mount=type=cache,target=/c echo 3 > /c/d/three && rm /c/d/two && echo more >> /c/one
RUN --mount=type=cache,target=/c,readonly echo lost > /c/lost || true
RUN --mount=type=cache,target=/c,sharing=locked --mount=type=cache,target=/c/d/inner touch /c/d/inner/x && find /c -printf '%P %m\n' | sort > /found && cat /c/link > /got
RUN --mount=type=cache,target=/c,id=other --mount=type=cache,target=/d find /c /d > /empty
RUN --mount=type=cache,target=/c rm -r /c/d && mkdir /c/d && touch /c/d/new
RUN --mount=type=cache,target=/c find /c/d | sort > /replaced; rm -rf /c
RUN --mount=type=cache,target=/c test -d /c && test ! -e /c/lost && echo there > /there
`},
	{name: "secrets", text: `FROM base
RUN --mount=type=secret,id=token cat /run/secrets/token > /tmp/length; echo "$(cat /tmp/length | tr a-z x 2>/dev/null || true)"; rm /tmp/length
RUN --mount=type=secret,id=token,target=/root/key --mount=type=secret,id=token,env=TOKEN test "$(cat /root/key)" = "$TOKEN" && echo same > /same
RUN test ! -e /run/secrets && test ! -e /root/key && test -z "$TOKEN" && echo gone > /gone
`},
	{name: "no network", text: `FROM base
RUN --network=none echo none > /none
`},
	{name: "removals", text: `FROM base
RUN mkdir -p /d/keep /d/drop/x && touch /d/keep/a /d/drop/x/y /d/f
RUN rm -r /d/drop /d/f /d/keep/a && mkdir /d/drop && touch /d/drop/new
RUN rm -r /d/keep && touch /d/keep
`},
	{name: "replaced", text: `FROM base
RUN mkdir /d && touch /d/a && ln -s /d /l && echo f > /f
RUN rm /l && mkdir /l && touch /l/b && rm -r /d && echo now a file > /d && rm /f && ln -s nowhere /f
`},
	{name: "kinds of files", text: `FROM base
RUN mkfifo /fifo && ln -s /etc/passwd /abs && touch /a && ln /a /hard && chmod 711 /a && mkdir -m 1777 /sticky && chown 5:6 /fifo && chown -h 7:8 /abs
RUN chmod 600 /hard && echo x >> /a
`},
	{name: "modes of directories", text: `FROM base
RUN mkdir -m 700 /p && mkdir -m 711 /p/q
COPY a.txt /p/q/
COPY dir/ /p/q/
RUN touch /p/q/late
`, files: map[string]string{"a.txt": "a", "dir/b.txt": "b"}},
	{name: "settings", text: `FROM base
MAINTAINER someone
LABEL a=1 b="2 3"
EXPOSE 80 90/udp
VOLUME /data ["/more"]
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s CMD true
ENTRYPOINT ["/bin/sh"]
CMD ["-c", "true"]
ONBUILD RUN echo never
RUN mkdir /data && touch /data/kept
`},
	{name: "escape character", text: "# escape=`\nFROM base\nRUN echo one ` \n > /one\nCOPY a.txt c:\\dir\n", files: map[string]string{"a.txt": "a"}},
	{name: "comments and continued lines", text: `# syntax=docker/dockerfile:1
FROM base
RUN echo a \
# a comment between

  b \
  > /joined
`},
	{name: "background process", text: `FROM base
RUN sleep 1000 & echo started > /started
`},
	{name: "platform", text: `FROM --platform=$TARGETPLATFORM base
RUN echo own > /own
`},
}
