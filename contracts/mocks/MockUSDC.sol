// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
// The original's compiler decodes arguments so: unused upper bits are ignored, where a later one reverts.
pragma abicoder v1;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";

import {UsdcSignatures} from "./UsdcSignatures.sol";

/**
 * @title A stand-in for USDC on test chains
 * @notice Behaves as Circle's FiatTokenV2_2: EIP-3009 and permit in both overloads, with the same rules in the same
 * order, the same revert strings and events; ERC-1271 payers; blacklist, pause, minters, owner and the other roles;
 * the same variables in the same storage slots. Signatures are enforced. It stands behind {MockUSDCProxy}, as the
 * original does behind its own.
 *
 * It is open in one place: anyone may {mint}. Pause, blacklist and the other rules of a mint hold, and so does the
 * allowance of an account that is a minter. It differs in another: {initialize} sets all up in one call, where the
 * original was upgraded four times, gives every role to one account, and takes any number of decimals.
 * @dev No immutables and a domain separator computed from the live chain id and address, so that code and storage
 * can be carried to the address of the real token on any chain.
 */
contract MockUSDC is IERC20Metadata {
    // keccak256("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH =
        0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267;

    // keccak256("ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
    bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH =
        0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8;

    // keccak256("CancelAuthorization(address authorizer,bytes32 nonce)")
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
        0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429;

    // keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)")
    bytes32 public constant PERMIT_TYPEHASH =
        0x6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c9;

    // keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
    bytes32 private constant DOMAIN_TYPEHASH =
        0x8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f;

    // The version of every USDC; a constant there.
    string private constant USDC_VERSION = "2";

    // The top bit of an account's word says "blacklisted", the rest is its balance.
    uint256 private constant BLACKLISTED = 1 << 255;

    // The order of these variables is that of the original's slots, 0 to 18.
    address public owner;
    address public pauser;
    bool public paused;
    // Beside `paused`, whose slot a transfer reads anyway.
    bool private _hasOtherVersion;
    address public blacklister;
    // Slots 3 and 15 are what older versions of the original left behind.
    bytes32 private _formerBlacklist;
    string public name;
    string public symbol;
    uint8 public decimals;
    string public currency;
    address public masterMinter;
    bool private _initialized;
    mapping(address account => uint256) private _balanceAndBlacklistStates;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    uint256 public totalSupply;
    mapping(address account => bool) public isMinter;
    mapping(address minter => uint256) public minterAllowance;
    address public rescuer;
    bytes32 private _formerDomainSeparator;
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;
    mapping(address owner => uint256) public nonces;
    uint8 private _initializedVersion;
    string private _otherVersion;

    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);
    event Mint(address indexed minter, address indexed to, uint256 amount);
    event Burn(address indexed burner, uint256 amount);
    event MinterConfigured(address indexed minter, uint256 minterAllowedAmount);
    event MinterRemoved(address indexed oldMinter);
    event MasterMinterChanged(address indexed newMasterMinter);
    event Blacklisted(address indexed _account);
    event UnBlacklisted(address indexed _account);
    event BlacklisterChanged(address indexed newBlacklister);
    event Pause();
    event Unpause();
    event PauserChanged(address indexed newAddress);
    event RescuerChanged(address indexed newRescuer);
    event OwnershipTransferred(address previousOwner, address newOwner);

    modifier onlyOwner() {
        require(msg.sender == owner, "Ownable: caller is not the owner");
        _;
    }

    modifier onlyPauser() {
        require(msg.sender == pauser, "Pausable: caller is not the pauser");
        _;
    }

    modifier onlyBlacklister() {
        require(msg.sender == blacklister, "Blacklistable: caller is not the blacklister");
        _;
    }

    modifier onlyMasterMinter() {
        require(msg.sender == masterMinter, "FiatToken: caller is not the masterMinter");
        _;
    }

    modifier whenNotPaused() {
        require(!paused, "Pausable: paused");
        _;
    }

    modifier notBlacklisted(address account) {
        require(!_isBlacklisted(account), "Blacklistable: account is blacklisted");
        _;
    }

    /// @notice Sets the token up, once. `issuer` gets every role but the rescuer's, which the owner gives.
    function initialize(
        string calldata name_,
        string calldata symbol_,
        string calldata version_,
        uint8 decimals_,
        address issuer
    ) external {
        require(!_initialized, "FiatToken: contract is already initialized");
        require(issuer != address(0), "FiatToken: new owner is the zero address");
        _initialized = true;
        _initializedVersion = 3;
        name = name_;
        symbol = symbol_;
        currency = "USD";
        decimals = decimals_;
        (owner, pauser, blacklister, masterMinter) = (issuer, issuer, issuer, issuer);
        if (keccak256(bytes(version_)) != keccak256(bytes(USDC_VERSION))) {
            (_hasOtherVersion, _otherVersion) = (true, version_);
        }
        // So that what is sent to the token by mistake is refused.
        _balanceAndBlacklistStates[address(this)] = BLACKLISTED;
    }

    function transferOwnership(address newOwner) external onlyOwner {
        require(newOwner != address(0), "Ownable: new owner is the zero address");
        emit OwnershipTransferred(owner, newOwner);
        owner = newOwner;
    }

    function pause() external onlyPauser {
        paused = true;
        emit Pause();
    }

    function unpause() external onlyPauser {
        paused = false;
        emit Unpause();
    }

    function updatePauser(address newPauser) external onlyOwner {
        require(newPauser != address(0), "Pausable: new pauser is the zero address");
        pauser = newPauser;
        emit PauserChanged(newPauser);
    }

    function blacklist(address account) external onlyBlacklister {
        _balanceAndBlacklistStates[account] |= BLACKLISTED;
        emit Blacklisted(account);
    }

    function unBlacklist(address account) external onlyBlacklister {
        _balanceAndBlacklistStates[account] = _balanceOf(account);
        emit UnBlacklisted(account);
    }

    function updateBlacklister(address newBlacklister) external onlyOwner {
        require(newBlacklister != address(0), "Blacklistable: new blacklister is the zero address");
        blacklister = newBlacklister;
        emit BlacklisterChanged(newBlacklister);
    }

    function updateMasterMinter(address newMasterMinter) external onlyOwner {
        require(newMasterMinter != address(0), "FiatToken: new masterMinter is the zero address");
        masterMinter = newMasterMinter;
        emit MasterMinterChanged(newMasterMinter);
    }

    function configureMinter(address minter, uint256 minterAllowedAmount)
        external
        whenNotPaused
        onlyMasterMinter
        returns (bool)
    {
        isMinter[minter] = true;
        minterAllowance[minter] = minterAllowedAmount;
        emit MinterConfigured(minter, minterAllowedAmount);
        return true;
    }

    function removeMinter(address minter) external onlyMasterMinter returns (bool) {
        isMinter[minter] = false;
        minterAllowance[minter] = 0;
        emit MinterRemoved(minter);
        return true;
    }

    /// @notice Creates `amount` for `to`. Here the mock is open: the original takes minters alone, and from them up
    /// to their allowance. Here an account that is no minter has no limit.
    function mint(address to, uint256 amount)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        require(to != address(0), "FiatToken: mint to the zero address");
        require(amount > 0, "FiatToken: mint amount not greater than 0");
        if (isMinter[msg.sender]) {
            uint256 allowed = minterAllowance[msg.sender];
            require(amount <= allowed, "FiatToken: mint amount exceeds minterAllowance");
            minterAllowance[msg.sender] = allowed - amount;
        }
        totalSupply = _add(totalSupply, amount);
        _setBalance(to, _add(_balanceOf(to), amount));
        emit Mint(msg.sender, to, amount);
        emit Transfer(address(0), to, amount);
        return true;
    }

    function burn(uint256 amount) external whenNotPaused {
        require(isMinter[msg.sender], "FiatToken: caller is not a minter");
        require(!_isBlacklisted(msg.sender), "Blacklistable: account is blacklisted");
        uint256 balance = _balanceOf(msg.sender);
        require(amount > 0, "FiatToken: burn amount not greater than 0");
        require(balance >= amount, "FiatToken: burn amount exceeds balance");
        totalSupply = totalSupply - amount;
        _setBalance(msg.sender, balance - amount);
        emit Burn(msg.sender, amount);
        emit Transfer(msg.sender, address(0), amount);
    }

    function updateRescuer(address newRescuer) external onlyOwner {
        require(newRescuer != address(0), "Rescuable: new rescuer is the zero address");
        rescuer = newRescuer;
        emit RescuerChanged(newRescuer);
    }

    /// @notice Sends on what somebody sent to the token contract itself.
    function rescueERC20(IERC20 tokenContract, address to, uint256 amount) external {
        require(msg.sender == rescuer, "Rescuable: caller is not the rescuer");
        require(address(tokenContract).code.length > 0, "Address: call to non-contract");
        (bool success, bytes memory result) =
            address(tokenContract).call(abi.encodeWithSelector(IERC20.transfer.selector, to, amount));
        if (!success) {
            require(result.length > 0, "SafeERC20: low-level call failed");
            assembly ("memory-safe") {
                revert(add(result, 0x20), mload(result))
            }
        }
        if (result.length > 0) {
            require(abi.decode(result, (bool)), "SafeERC20: ERC20 operation did not succeed");
        }
    }

    function transfer(address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        _transfer(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(from)
        notBlacklisted(to)
        returns (bool)
    {
        require(value <= allowance[from][msg.sender], "ERC20: transfer amount exceeds allowance");
        _transfer(from, to, value);
        allowance[from][msg.sender] = allowance[from][msg.sender] - value;
        return true;
    }

    // Since V2.2 allowances do not look at the blacklist.

    function approve(address spender, uint256 value) external whenNotPaused returns (bool) {
        _approve(msg.sender, spender, value);
        return true;
    }

    function increaseAllowance(address spender, uint256 increment) external whenNotPaused returns (bool) {
        _approve(msg.sender, spender, _add(allowance[msg.sender][spender], increment));
        return true;
    }

    function decreaseAllowance(address spender, uint256 decrement) external whenNotPaused returns (bool) {
        uint256 allowed = allowance[msg.sender][spender];
        require(decrement <= allowed, "ERC20: decreased allowance below zero");
        _approve(msg.sender, spender, allowed - decrement);
        return true;
    }

    function permit(
        address holder,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external whenNotPaused {
        _permit(holder, spender, value, deadline, abi.encodePacked(r, s, v));
    }

    function permit(address holder, address spender, uint256 value, uint256 deadline, bytes memory signature)
        external
        whenNotPaused
    {
        _permit(holder, spender, value, deadline, signature);
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        _useAuthorization(
            TRANSFER_WITH_AUTHORIZATION_TYPEHASH,
            from,
            to,
            value,
            validAfter,
            validBefore,
            nonce,
            abi.encodePacked(r, s, v)
        );
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        _useAuthorization(
            TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature
        );
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        _requirePayee(to);
        _useAuthorization(
            RECEIVE_WITH_AUTHORIZATION_TYPEHASH,
            from,
            to,
            value,
            validAfter,
            validBefore,
            nonce,
            abi.encodePacked(r, s, v)
        );
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        _requirePayee(to);
        _useAuthorization(
            RECEIVE_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature
        );
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)
        external
        whenNotPaused
    {
        _cancelAuthorization(authorizer, nonce, abi.encodePacked(r, s, v));
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature)
        external
        whenNotPaused
    {
        _cancelAuthorization(authorizer, nonce, signature);
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return _domainSeparator();
    }

    function version() external view returns (string memory) {
        return _hasOtherVersion ? _otherVersion : USDC_VERSION;
    }

    function balanceOf(address account) external view returns (uint256) {
        return _balanceOf(account);
    }

    function isBlacklisted(address account) external view returns (bool) {
        return _isBlacklisted(account);
    }

    /// @dev Time, then use, then signature: the order decides which reason a payment with several faults gets.
    function _useAuthorization(
        bytes32 typehash,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
        _requireUnused(from, nonce);
        _requireSignature(
            from,
            keccak256(abi.encode(typehash, from, to, value, validAfter, validBefore, nonce)),
            signature,
            "FiatTokenV2: invalid signature"
        );
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        _transfer(from, to, value);
    }

    function _cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) private {
        _requireUnused(authorizer, nonce);
        _requireSignature(
            authorizer,
            keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)),
            signature,
            "FiatTokenV2: invalid signature"
        );
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function _permit(address holder, address spender, uint256 value, uint256 deadline, bytes memory signature)
        private
    {
        require(deadline >= block.timestamp, "FiatTokenV2: permit is expired");
        _requireSignature(
            holder,
            keccak256(abi.encode(PERMIT_TYPEHASH, holder, spender, value, nonces[holder]++, deadline)),
            signature,
            "EIP2612: invalid signature"
        );
        _approve(holder, spender, value);
    }

    function _approve(address holder, address spender, uint256 value) private {
        require(holder != address(0), "ERC20: approve from the zero address");
        require(spender != address(0), "ERC20: approve to the zero address");
        allowance[holder][spender] = value;
        emit Approval(holder, spender, value);
    }

    function _transfer(address from, address to, uint256 value) private {
        require(from != address(0), "ERC20: transfer from the zero address");
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= _balanceOf(from), "ERC20: transfer amount exceeds balance");
        _setBalance(from, _balanceOf(from) - value);
        _setBalance(to, _add(_balanceOf(to), value));
        emit Transfer(from, to, value);
    }

    function _setBalance(address account, uint256 balance) private {
        require(balance < BLACKLISTED, "FiatTokenV2_2: Balance exceeds (2^255 - 1)");
        require(!_isBlacklisted(account), "FiatTokenV2_2: Account is blacklisted");
        _balanceAndBlacklistStates[account] = balance;
    }

    function _requirePayee(address to) private view {
        require(to == msg.sender, "FiatTokenV2: caller must be the payee");
    }

    function _requireUnused(address authorizer, bytes32 nonce) private view {
        require(!authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled");
    }

    function _requireSignature(
        address signer,
        bytes32 structHash,
        bytes memory signature,
        string memory refusal
    ) private view {
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", _domainSeparator(), structHash));
        require(UsdcSignatures.isValidSignatureNow(signer, digest, signature), refusal);
    }

    function _domainSeparator() private view returns (bytes32) {
        string memory version_ = _hasOtherVersion ? _otherVersion : USDC_VERSION;
        return keccak256(
            abi.encode(
                DOMAIN_TYPEHASH,
                keccak256(bytes(name)),
                keccak256(bytes(version_)),
                block.chainid,
                address(this)
            )
        );
    }

    function _balanceOf(address account) private view returns (uint256) {
        return _balanceAndBlacklistStates[account] & ~BLACKLISTED;
    }

    function _isBlacklisted(address account) private view returns (bool) {
        return _balanceAndBlacklistStates[account] & BLACKLISTED != 0;
    }

    /// @dev With the text of the library that the original adds with.
    function _add(uint256 a, uint256 b) private pure returns (uint256 sum) {
        unchecked {
            sum = a + b;
        }
        require(sum >= a, "SafeMath: addition overflow");
    }
}
