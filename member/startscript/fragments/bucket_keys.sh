# TOML's literal strings have no escape for their own quote.
case $S3_ACCESS_KEY$S3_SECRET_KEY in
*"'"*)
    echo "a key of the bucket contains a single quote" >&2
    exit 1
    ;;
esac
printf "access-key = '%s'\nsecret-key = '%s'\n" "$S3_ACCESS_KEY" "$S3_SECRET_KEY" >>"$FILE"
